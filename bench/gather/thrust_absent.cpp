// For builds without the CUDA toolkit.

#include <stdexcept>

#include "bench/gather/peers.h"

namespace hpe::bench {

bool thrust_there() { return false; }
void by_thrust(int /*device*/, const movement& /*m*/) {
  throw std::logic_error("Thrust was not there when this was built");
}
void by_plain_kernel(int /*device*/, const movement& /*m*/) {
  throw std::logic_error("nvcc was not there when this was built");
}

}  // namespace hpe::bench
