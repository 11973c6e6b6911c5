#pragma once

#include <driver_types.h>

#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>

#include "hpe/node.h"
#include "interpose/cudart/memory_table.h"

namespace hpe::cudart {

/// Device memory that this process shares with others, and theirs that it has opened. A CUDA handle is hpe's of the
/// whole allocation. Thread safe. Members throw failure and hpe::error.
class ipc_table {
 public:
  explicit ipc_table(memory_table& memory) : memory_(memory) {}

  /// The same handle for every address in an allocation. cudaErrorInvalidValue for memory that is not a device's.
  cudaIpcMemHandle_t export_memory(const void* address);

  /// The base of the allocation, here; opened again it is the same address. cudaErrorInvalidResourceHandle for a handle
  /// of this process, or of one that has ended.
  void* open(const cudaIpcMemHandle_t& handle, int device);
  void close(void* base);  ///< as often as it was opened; cudaErrorInvalidValue for other addresses

  /// Before an allocation is freed: others keep what they have opened.
  void forget(const void* base);

  /// After memory was freed otherwise (cudaDeviceReset): what is not there any more is not open.
  void drop_closed();

  /// Before this process copies from its memory: others may have written what kernels see and the host does not yet.
  void refresh(const void* address);

 private:
  struct opened {
    hpeExport handle;
    int times;
  };

  memory_table& memory_;
  std::mutex mutex_;
  std::map<const void*, hpeExport> exports_;  // by base
  std::map<void*, opened> opened_;
  std::atomic<bool> exports_any_{false};
};

}  // namespace hpe::cudart
