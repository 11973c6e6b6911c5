// Replaces local_sort_cuda.cu and repeated_sort.cu in builds without a CUDA toolkit.

#include "apps/sort/local_sort.h"
#include "apps/sort/repeated_sort.h"
#include "hpe/hpe.hpp"

namespace hpe::sort {

const local_sort* find_local_sort(const std::string& /*name*/) { return nullptr; }

class repeated_sort::recording {};

repeated_sort::repeated_sort(const local_sort& /*how*/) {}
repeated_sort::~repeated_sort() = default;
repeated_sort::repeated_sort(repeated_sort&&) noexcept = default;
void repeated_sort::run(const local_range& /*range*/) {
  throw error(HPE_ERROR_NOT_SUPPORTED, "GPUs cannot sort here, because hpe was built without a CUDA toolkit");
}

}  // namespace hpe::sort
