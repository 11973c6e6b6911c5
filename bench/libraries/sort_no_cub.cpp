// Replaces sort_cub.cu in builds without the CUDA toolkit.

#include <stdexcept>

#include "bench/libraries/sort_peers.h"

namespace hpe::bench {

bool cub_there() { return false; }
cub_sort::cub_sort(int /*device*/, std::size_t /*count*/) : state_(nullptr) {
  throw std::logic_error("this benchmark was built without CUB");
}
cub_sort::~cub_sort() = default;
void cub_sort::run(std::uint32_t* /*keys*/) {}

}  // namespace hpe::bench
