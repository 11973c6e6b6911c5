// The buffer of MPI_Bsend. MPI keeps its own records in the buffer and sends messages from it in the background. MPI
// therefore gets ordinary memory of the same size in place of memory of hpe; MPI_Buffer_detach returns the program's
// address.

#include <memory>
#include <mutex>
#include <new>

#include "interpose/mpi/pending.h"

namespace hpe::interpose::mpi {

namespace {

struct attached {
  std::mutex mutex;
  void* given = nullptr;
  std::unique_ptr<std::byte[]> instead;
};

attached& the_one() {
  static auto* const it = new attached;
  return *it;
}

}  // namespace

}  // namespace hpe::interpose::mpi

using namespace hpe::interpose::mpi;  // NOLINT(google-build-using-namespace): the functions below are C

extern "C" {

int MPI_Buffer_attach(void* buffer, int size) {
  auto& next = HPE_REAL(Buffer_attach);
  if (size <= 0 || hpe::core::host_access::of(buffer) == nullptr) return leave(next(buffer, size));
  std::unique_ptr<std::byte[]> instead(new (std::nothrow) std::byte[static_cast<std::size_t>(size)]);
  if (instead == nullptr)
    return leave(raise(no_object{}, hpe::error(HPE_ERROR_OUT_OF_MEMORY,
                                               "the host has no memory left for the buffer of MPI_Buffer_attach")));
  const int result = next(instead.get(), size);
  if (result != MPI_SUCCESS) return leave(result);
  attached& it = the_one();
  const std::lock_guard lock(it.mutex);
  it.given = buffer;
  it.instead = std::move(instead);
  return leave(result);
}

int MPI_Buffer_detach(void* buffer, int* size) {
  const int result = HPE_REAL(Buffer_detach)(buffer, size);
  if (result != MPI_SUCCESS) return leave(result);
  attached& it = the_one();
  const std::lock_guard lock(it.mutex);
  if (it.given != nullptr) {
    *static_cast<void**>(buffer) = it.given;
    it.given = nullptr;
    it.instead.reset();
  }
  return leave(result);
}
}
