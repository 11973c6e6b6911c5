#pragma once

#include <driver_types.h>

#include <atomic>
#include <cstddef>
#include <map>

#include "hpe/node.h"
#include "interpose/soft/cudart/memory/memory_table.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cudart {

/// Exports device memory of this process, and opens memory of other processes. A CUDA memory handle contains the
/// hpeExport of the whole allocation, and so does the exported pointer of a pool. Thread safe. The functions throw
/// `failure` and hpe::error.
class ipc_table {
 public:
  explicit ipc_table(memory_table& memory) : memory_(memory) {}

  /// Returns the same handle for all addresses in an allocation. Throws cudaErrorInvalidValue if the memory is not of
  /// this kind; `kind` is `device` for memory of cudaMalloc and its variants, and `pool` for memory of pools.
  hpeExport export_memory(const void* address, allocation_kind kind);

  /// Returns the base of the allocation in this process; if the allocation is opened again, the address is the same.
  /// Throws cudaErrorInvalidResourceHandle if this process has exported the memory, or if the exporting process has
  /// ended.
  void* open(const hpeExport& handle, int device, allocation_kind kind);

  bool has_opened(void* base, allocation_kind kind);

  /// To be called once for each call of open(). Returns false if the address was not returned by open() for memory of
  /// this kind.
  bool close(void* base, allocation_kind kind);

  /// Ends the export of an allocation. To be called before the allocation is freed. Processes that have opened the
  /// memory can continue to use it.
  void forget(const void* base);

  /// To be called after cudaDeviceReset has freed memory: removes the records of opened memory that no longer exists.
  void drop_closed();

  /// To be called before this process copies from `address`. If the memory is exported, other processes may have
  /// changed the bytes in device memory. This function makes the bytes in device memory the valid ones, so that the
  /// copy does not read older bytes.
  void refresh(const void* address);

 private:
  struct opened {
    hpeExport handle;
    allocation_kind kind;  // the kind of the memory in the exporting process
    int times;
  };

  memory_table& memory_;
  mutex mutex_;
  std::map<const void*, hpeExport> exports_ HPE_GUARDED_BY(mutex_);  // the key is the base of the allocation
  std::map<void*, opened> opened_ HPE_GUARDED_BY(mutex_);
  std::atomic<bool> exports_any_{false};
};

}  // namespace hpe::cudart
