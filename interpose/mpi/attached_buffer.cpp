// The buffer that the program attaches for MPI_Bsend. MPI stores its own records in this buffer and sends messages from
// it in the background. Therefore, if the program attaches device memory, hpe attaches ordinary memory of the same size
// instead. MPI_Buffer_detach returns the program's address.

#include <memory>
#include <new>

#include "interpose/mpi/pending.h"
#include "runtime/base/thread_safety.h"

namespace hpe::interpose::mpi {

namespace {

struct attached {
  hpe::mutex mutex;
  void* given HPE_GUARDED_BY(mutex) = nullptr;
  std::unique_ptr<std::byte[]> instead HPE_GUARDED_BY(mutex);
};

attached& the_one() {
  static auto* const it = new attached;
  return *it;
}

template <class Size, class Next>
int attach(void* buffer, Size size, Next& next) {
  if (size <= 0 || buffer == nullptr || !concerns(buffer)) return leave(next(buffer, size));
  std::unique_ptr<std::byte[]> instead(new (std::nothrow) std::byte[static_cast<std::size_t>(size)]);
  if (instead == nullptr)
    return leave(raise(no_object{}, error(HPE_ERROR_OUT_OF_MEMORY,
                                          "the host has no memory left for the buffer of MPI_Buffer_attach")));
  const int result = next(instead.get(), size);
  if (result != MPI_SUCCESS) return leave(result);
  attached& it = the_one();
  const lock_guard lock(it.mutex);
  it.given = buffer;
  it.instead = std::move(instead);
  return leave(result);
}

template <class Size, class Next>
int detach(void* buffer, Size* size, Next& next) {
  const int result = next(buffer, size);
  if (result != MPI_SUCCESS) return leave(result);
  attached& it = the_one();
  const lock_guard lock(it.mutex);
  if (it.given != nullptr) {
    *static_cast<void**>(buffer) = it.given;
    it.given = nullptr;
    it.instead.reset();
  }
  return leave(result);
}

}  // namespace

}  // namespace hpe::interpose::mpi

using namespace hpe::interpose::mpi;  // NOLINT(google-build-using-namespace): the functions below are C

#pragma GCC visibility push(default)
extern "C" {

int MPI_Buffer_attach(void* buffer, int size) { return attach(buffer, size, HPE_REAL(Buffer_attach)); }
int MPI_Buffer_attach_c(void* buffer, MPI_Count size) { return attach(buffer, size, HPE_REAL(Buffer_attach_c)); }
int MPI_Buffer_detach(void* buffer, int* size) { return detach(buffer, size, HPE_REAL(Buffer_detach)); }
int MPI_Buffer_detach_c(void* buffer, MPI_Count* size) { return detach(buffer, size, HPE_REAL(Buffer_detach_c)); }
}
#pragma GCC visibility pop
