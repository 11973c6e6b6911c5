// Where there is no CUDA toolkit.

#include "apps/sort/local_sort.h"
#include "hpe/hpe.hpp"

namespace hpe::sort {

bool can_sort_locally(const std::string& /*name*/) { return false; }

std::size_t scratch_of_local_sort(const std::string& /*name*/, std::size_t /*count*/) { return 0; }

void sort_locally(const std::string& name, int /*device*/, std::span<std::byte> /*input*/,
                  std::span<std::byte> /*output*/, std::span<std::byte> /*workspace*/,
                  std::span<std::byte> /*scratch*/) {
  throw error(HPE_ERROR_NOT_SUPPORTED,
              "this build cannot sort " + name + " on GPUs: it was made without a CUDA toolkit");
}

}  // namespace hpe::sort
