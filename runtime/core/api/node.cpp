// The C interface: memory of other processes.

#include "hpe/node.h"

#include "runtime/core/api/api_guard.h"
#include "runtime/core/runtime.h"

using hpe::core::guarded;
using hpe::core::runtime;

namespace {

void require_handle(const hpeExport* handle) {
  HPE_REQUIRE(handle != nullptr, HPE_ERROR_INVALID_ARGUMENT,
              "a handle of exported memory was expected, not a null pointer");
}

}  // namespace

hpeStatus hpeExportBegin(hpeExport* handle, const void* pointer, size_t size) {
  return guarded([&] {
    require_handle(handle);
    *handle = hpe::node::encode(runtime::instance().exported().begin(pointer, size));
  });
}

hpeStatus hpeExportEnd(const hpeExport* handle) {
  return guarded([&] {
    require_handle(handle);
    const auto h = hpe::node::decode(*handle);
    if (!h) hpe::node::peer::throw_ended();
    runtime::instance().exported().end(*h);
  });
}

hpeStatus hpeExportReachable(const hpeExport* handle, int* reachable) {
  return guarded([&] {
    require_handle(handle);
    HPE_REQUIRE(reachable != nullptr, HPE_ERROR_INVALID_ARGUMENT,
                "hpeExportReachable: the pointer for the answer is null");
    *reachable = runtime::instance().imported().reachable(*handle) ? 1 : 0;
  });
}

hpeStatus hpeExportCopy(void* destination, const hpeExport* handle, size_t offset, size_t size) {
  return guarded([&] {
    require_handle(handle);
    auto& it = runtime::instance();
    it.copies().wait_for_announced(destination, size, true);
    it.imported().copy(destination, *handle, offset, size);
  });
}

hpeStatus hpeExportOpen(void** pointer, const hpeExport* handle) {
  return guarded([&] {
    require_handle(handle);
    HPE_REQUIRE(pointer != nullptr, HPE_ERROR_INVALID_ARGUMENT, "hpeExportOpen: the pointer for the address is null");
    *pointer = runtime::instance().imported().open(*handle);
  });
}
