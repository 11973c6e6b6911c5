// Replaces scan_cub.cu in builds without the CUDA toolkit.

#include <stdexcept>

#include "bench/libraries/scan_peers.h"
#include "hpe/hpe.hpp"

namespace hpe::bench {

void device_copy(int /*device*/, void* output, const void* input, std::size_t bytes) { copy(output, input, bytes); }

bool cub_sum::there() { return false; }
cub_sum::cub_sum(int /*device*/, std::uint64_t /*length*/, std::uint64_t /*problems*/) : state_(nullptr) {
  throw std::logic_error("this benchmark was built without CUB");
}
cub_sum::~cub_sum() = default;
void cub_sum::run(const std::int32_t* /*input*/, std::int32_t* /*output*/) {}

}  // namespace hpe::bench
