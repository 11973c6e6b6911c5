// The C interface: files of memory at addresses that the program chooses.

#include "hpe/map.h"

#include "runtime/core/api/api_guard.h"
#include "runtime/core/runtime.h"

using hpe::core::guarded;
using hpe::core::runtime;

hpeStatus hpeReserve(void** pointer, size_t size) {
  return guarded([&] {
    HPE_REQUIRE(pointer != nullptr, HPE_ERROR_INVALID_ARGUMENT, "hpeReserve: the pointer for the address is null");
    *pointer = runtime::instance().memory().files().reserve(size);
  });
}

hpeStatus hpeMapFile(void* pointer, size_t size, int file, uint64_t offset) {
  return guarded([&] { runtime::instance().memory().files().map(pointer, size, file, offset); });
}

hpeStatus hpeUnmapFile(void* pointer, size_t size) {
  return guarded([&] { runtime::instance().memory().files().unmap(pointer, size); });
}
