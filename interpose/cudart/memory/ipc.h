#pragma once

#include <driver_types.h>

#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>

#include "hpe/node.h"
#include "interpose/cudart/memory/memory_table.h"

namespace hpe::cudart {

/// Device memory that this process exports, and memory of other processes that it has opened. A CUDA memory handle,
/// and the exported pointer of a pool, is the hpeExport of the whole allocation. Thread safe. Members throw failure and
/// hpe::error.
class ipc_table {
 public:
  explicit ipc_table(memory_table& memory) : memory_(memory) {}

  /// All addresses in an allocation give the same handle. Throws cudaErrorInvalidValue for memory of another kind:
  /// device for that of cudaMalloc and its variants, pool for that of pools.
  hpeExport export_memory(const void* address, memory_kind kind);

  /// Returns the base of the allocation in this process; opening it again returns the same address. Throws
  /// cudaErrorInvalidResourceHandle for a handle of this process, or of a process that has ended.
  void* open(const hpeExport& handle, int device, memory_kind kind);

  bool has_opened(void* base, memory_kind kind);

  /// Once for each open(). Returns false for an address that is not one that open() returned for memory of this kind.
  bool close(void* base, memory_kind kind);

  /// To be called before an allocation is freed: ends its export. Processes that have opened the memory keep it.
  void forget(const void* base);

  /// To be called after cudaDeviceReset freed memory: forgets opened memory that no longer exists.
  void drop_closed();

  /// To be called before this process copies from `address`: if it is exported, makes the data at its home the valid
  /// copy, because other processes may have written it.
  void refresh(const void* address);

 private:
  struct opened {
    hpeExport handle;
    memory_kind kind;  // in the exporting process
    int times;
  };

  memory_table& memory_;
  std::mutex mutex_;
  std::map<const void*, hpeExport> exports_;  // by base
  std::map<void*, opened> opened_;
  std::atomic<bool> exports_any_{false};
};

}  // namespace hpe::cudart
