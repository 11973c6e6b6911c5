// The functions that share memory pools between processes. The descriptor of a pool is a memory file that contains the
// pool's device and key. Each allocation is exported separately: the exporting process creates an hpeExport, and the
// importing process opens it.

#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/device/device_table.h"
#include "interpose/soft/cudart/device/errors.h"
#include "interpose/soft/cudart/memory/ipc.h"
#include "interpose/soft/cudart/memory/pool_table.h"

using namespace hpe::cudart;

namespace {

struct pool_description {
  char format[16] = "hpe CUDA pool 2";
  std::int32_t device = 0;
  pool_key key;
};

/// Returns the file descriptor of a new, sealed memory file that contains the description. Throws
/// cudaErrorOperatingSystem.
int make_descriptor(const pool_description& of) {
  const int file = ::memfd_create("hpe-cuda-pool", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  require(file >= 0, cudaErrorOperatingSystem);
  const bool is_written = ::write(file, &of, sizeof of) == static_cast<ssize_t>(sizeof of);
  if (!is_written || ::fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0) {
    ::close(file);
    throw failure(cudaErrorOperatingSystem, "the descriptor of a memory pool cannot be created");
  }
  return file;
}

/// Returns the description in a memory file. Throws cudaErrorInvalidValue if make_descriptor did not create the file.
pool_description read_descriptor(int file) {
  const pool_description wanted;
  pool_description found;
  const bool is_ours = ::pread(file, &found, sizeof found, 0) == static_cast<ssize_t>(sizeof found) &&
                       std::memcmp(found.format, wanted.format, sizeof wanted.format) == 0;
  if (!is_ours) throw failure(cudaErrorInvalidValue, "the descriptor does not belong to a memory pool of hpe");
  return found;
}

void require_descriptors(cudaMemAllocationHandleType type, unsigned flags) {
  require(flags == 0, cudaErrorInvalidValue);
  require(type == cudaMemHandleTypePosixFileDescriptor, cudaErrorNotSupported);
}

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaMemPoolExportToShareableHandle(void* handle, cudaMemPool_t pool,
                                                         cudaMemAllocationHandleType type, unsigned flags) {
  return api_call(__func__, [&] {
    require(handle != nullptr, cudaErrorInvalidValue);
    require_descriptors(type, flags);
    pool_description of;
    of.key = process().pools().key_of_shareable(pool);
    of.device = process().pools().find(pool)->device();
    *static_cast<int*>(handle) = make_descriptor(of);
  });
}

/// `handle` is the file descriptor, converted to a pointer. After the call, the program may close the descriptor.
cudaError_t CUDARTAPI cudaMemPoolImportFromShareableHandle(cudaMemPool_t* pool, void* handle,
                                                           cudaMemAllocationHandleType type, unsigned flags) {
  return api_call(__func__, [&] {
    require(pool != nullptr, cudaErrorInvalidValue);
    require_descriptors(type, flags);
    const pool_description of = read_descriptor(static_cast<int>(reinterpret_cast<std::intptr_t>(handle)));
    process().devices().require_device(of.device);
    *pool = process().pools().import_from(of.device, of.key);
  });
}

cudaError_t CUDARTAPI cudaMemPoolExportPointer(cudaMemPoolPtrExportData* made, void* pointer) {
  return api_call(__func__, [&] {
    require(made != nullptr, cudaErrorInvalidValue);
    const pool_key key = process().pools().key_of_block(pointer);
    *made = key.combine(process().ipc().export_memory(pointer, allocation_kind::pool));
  });
}

cudaError_t CUDARTAPI cudaMemPoolImportPointer(void** pointer, cudaMemPool_t pool, cudaMemPoolPtrExportData* from) {
  return api_call(__func__, [&] {
    require(pointer != nullptr && from != nullptr, cudaErrorInvalidValue);
    const hpeExport wanted = process().pools().key_of_imported(pool).separate(*from);
    try {
      *pointer = process().ipc().open(wanted, process().pools().find(pool)->device(), allocation_kind::pool);
    } catch (const failure& caught) {
      if (caught.code() != cudaErrorInvalidResourceHandle) throw;
      throw failure(cudaErrorInvalidValue,
                    "the data does not describe a pointer that the process of this pool exports from the pool");
    }
  });
}
}
