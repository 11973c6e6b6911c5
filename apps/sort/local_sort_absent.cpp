// Where there is no CUDA toolkit.

#include "apps/sort/local_sort.h"
#include "hpe/hpe.hpp"

namespace hpe::sort {

bool can_sort_locally(const std::string& /*name*/) { return false; }

void sort_locally(const std::string& name, int /*device*/, std::span<std::byte> /*input*/,
                  std::span<std::byte> /*output*/, std::span<std::byte> /*workspace*/) {
  throw error(HPE_ERROR_NOT_SUPPORTED,
              "this build cannot sort " + name + " on GPUs: it was made without a CUDA toolkit");
}

}  // namespace hpe::sort
