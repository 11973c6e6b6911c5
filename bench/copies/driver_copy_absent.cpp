#include "bench/copies/driver_copy.h"

namespace hpe::bench {

pageable_copy::pageable_copy(std::size_t largest) : largest_(largest) {}
void pageable_copy::up(int /*lane*/, const std::byte* /*pageable*/, std::size_t /*bytes*/) {}
void pageable_copy::down(int /*lane*/, std::byte* /*pageable*/, std::size_t /*bytes*/) {}

}  // namespace hpe::bench
