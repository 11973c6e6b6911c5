// Replaces thrust.cu in builds without the CUDA toolkit.

#include <stdexcept>

#include "bench/gather/peers.h"

namespace hpe::bench {

bool thrust_there() { return false; }
void by_thrust(int /*device*/, const movement& /*m*/) {
  throw std::logic_error("this benchmark was built without Thrust");
}
void by_plain_kernel(int /*device*/, const movement& /*m*/) {
  throw std::logic_error("this benchmark was built without nvcc");
}

}  // namespace hpe::bench
