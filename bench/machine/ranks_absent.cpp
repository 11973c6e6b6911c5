#include "bench/machine/ranks.h"

namespace hpe::bench {

message_rates measure_messages(std::size_t /*bytes*/, unsigned /*repeats*/) { return {}; }

}  // namespace hpe::bench
