#include <cstring>

#include "runtime/os/copy.h"

namespace hpe::os {

void copy_past_caches(void* destination, const void* source, std::size_t bytes) noexcept {
  std::memcpy(destination, source, bytes);
}

}  // namespace hpe::os
