// The C interface: memory of other libraries that CPU code can use.

#include "hpe/announce.h"
#include "interpose/adopted_pointers.h"
#include "runtime/core/api/api_guard.h"
#include "runtime/core/operations/host_access.h"

namespace {

using hpe::core::runtime;
using hpe::interpose::adopted_pointers;

std::size_t accessible_bytes(const void* pointer) {
  if (hpe::core::host_access::of(pointer) != nullptr) {
    const auto found = runtime::instance().memory().find(pointer);
    if (found.region == nullptr) return 0;
    return found.bytes - static_cast<std::size_t>(static_cast<const std::byte*>(pointer) - found.base);
  }
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  adopted_pointers* const adopted = adopted_pointers::of(address);
  return adopted != nullptr ? adopted->bytes_from(address) : 0;
}

}  // namespace

hpeStatus hpeGetAccessibleBytes(const void* pointer, size_t* bytes) {
  return hpe::core::guarded([&] {
    HPE_REQUIRE(bytes != nullptr, HPE_ERROR_INVALID_ARGUMENT,
                "hpeGetAccessibleBytes: the pointer for the answer is null");
    *bytes = accessible_bytes(pointer);
  });
}
