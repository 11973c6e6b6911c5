#include "interpose/mpi/staged_buffer.h"

#include "runtime/base/error.h"

namespace hpe::interpose::mpi {

namespace {

// The address in a call may lie outside of what it names, by a lower bound; so it is a number here.
std::byte* moved(const void* p, MPI_Aint by) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): pointer arithmetic must stay inside an object
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(p) + static_cast<std::uintptr_t>(by));
}

buffer_access access_to(const void* given, const layout& which, host_use use, bool again) {
  if (which.empty()) return {};
  const std::byte* const first = moved(given, which.begin());
  if (given == nullptr) {
    HPE_REQUIRE(
        !core::host_access::meets(first, which.extent()), HPE_ERROR_NOT_SUPPORTED,
        "MPI_BOTTOM with a datatype of absolute addresses that reach memory of hpe ({}); give the address of the "
        "allocation as the buffer, and displacements from there",
        static_cast<const void*>(first));
    return {};
  }
  return {first, which.extent(), use, again};
}

}  // namespace

staged_buffer::staged_buffer(const void* given, layout which, host_use use, bool again)
    : bytes_(std::move(which)),
      use_(use),
      access_(access_to(given, bytes_, use, again)),
      pointer_(access_.staged() ? moved(access_.data(), -bytes_.begin()) : const_cast<void*>(given)) {}

void staged_buffer::written(std::size_t bytes) {
  if (!access_.staged() || !is_written()) return;
  bytes_.visit(bytes,
               [&](stretch s) { access_.written(static_cast<std::size_t>(s.offset - bytes_.begin()), s.bytes); });
}

}  // namespace hpe::interpose::mpi
