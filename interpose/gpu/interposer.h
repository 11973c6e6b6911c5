#pragma once

#include <atomic>
#include <mutex>

#include "interpose/gpu/adopted/adopted_memory.h"
#include "interpose/gpu/adopted/touch_service.h"
#include "interpose/gpu/copies/pageable_copy.h"
#include "interpose/gpu/copies/peer_copy.h"
#include "interpose/gpu/work/deferred_copies.h"
#include "interpose/gpu/work/graph_frees.h"
#include "interpose/gpu/work/graph_memory.h"
#include "interpose/gpu/work/queued_uses.h"
#include "runtime/base/options.h"
#include "runtime/base/thread_safety.h"
#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

class host_calls;

/// Owns the objects that hpe needs in an unmodified CUDA program. The first call of instance() constructs the
/// interposer. The interposer is never destroyed, because threads of the program may call the driver until the process
/// ends.
class interposer {
 public:
  /// Returns the interposer, which the first call constructs. If the driver is too old for hpe or an option is invalid,
  /// this call and all later calls return nullptr. If host memory is too short, throws std::bad_alloc; the next call
  /// tries again.
  static interposer* instance();
  /// Returns the interposer; nullptr if instance() has not constructed it.
  static interposer* started() noexcept;

  [[nodiscard]] const device::cuda::driver& driver() const noexcept { return cu_; }
  [[nodiscard]] bool scope_is_parameters() const noexcept { return option_.scope == kernel_scope::args; }
  pageable_copy& copies() noexcept { return copies_; }
  peer_copy& peers() noexcept { return peers_; }
  adopted_memory& adopted() noexcept { return adopted_; }
  incoherent_uses& uses() noexcept { return uses_; }
  program_contexts& program() noexcept { return program_; }
  queued_uses& queued() noexcept { return queued_; }
  deferred_copies& deferred() noexcept { return deferred_; }
  graph_memory& memory_of_graphs() noexcept { return memory_of_graphs_; }

  /// Execute a large copy of the program with copies() or peers(): any_copy copies between any two addresses,
  /// box_copied copies a box. Both functions return the result for the program's call, or nullopt, without effect, if
  /// hpe would not be faster than the driver. If `wait` is true, an upload returns only when the data has arrived on
  /// the device, as CUDA demands for some calls; a download always waits for the data. If `after_all` is true, a copy
  /// between devices begins after all earlier work of the current context and of the contexts of both devices, and the
  /// function returns when the copy is done, like cuMemcpyPeer.
  std::optional<CUresult> any_copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream, bool wait);
  std::optional<CUresult> box_copied(CUdeviceptr to, CUdeviceptr from, const box_copy& given, CUstream stream,
                                     bool wait, bool after_all);

  /// Whether hpe may have a record of memory at an address. hpe removes the record when the program frees the memory.
  [[nodiscard]] bool may_know(CUdeviceptr address) const;

  /// To be called before the program frees the allocation that starts at an address, or unmaps a range.
  void gives_back(CUdeviceptr address);
  void gives_back(CUdeviceptr address, std::size_t bytes);

  /// The record of the allocations that the program's graphs free when they run.
  graph_frees& freed_by_graphs() noexcept { return freed_by_graphs_; }
  /// To be called before a graph is launched. Discards the records of the memory that nodes of graphs free, because the
  /// launch may free it.
  void launches_graph();

  /// Starts the service for page faults, so that CPU code can use the program's device memory. If an exception is
  /// thrown, the next call tries again. On a Linux kernel without membarrier, logs a warning and starts no service.
  void serve_touches();

  /// To be called before a context may be destroyed. Discards the records of the memory that CPU code, libc and MPI
  /// calls have used, and releases hpe's streams and buffers in all contexts.
  void forget_contexts();
  /// To be called before a context ends, with the context, or with null if hpe does not know which context ends.
  /// Discards the records of captures in the context.
  void forget_captures(CUcontext which);

 private:
  interposer();

  const options option_ = options::from_environment();
  const device::cuda::driver cu_;
  contexts contexts_;
  program_contexts program_;
  queued_uses queued_;
  deferred_copies deferred_;
  graph_memory memory_of_graphs_;
  incoherent_uses uses_;
  pageable_copy copies_;
  peer_copy peers_;
  adopted_memory adopted_;
  graph_frees freed_by_graphs_;
  std::once_flag serving_;
  std::atomic<host_calls*> calls_{nullptr};
};

}  // namespace hpe::cuda_hooks
