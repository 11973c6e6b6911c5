#pragma once

#include <atomic>
#include <mutex>

#include "interpose/gpu/adopted/adopted_memory.h"
#include "interpose/gpu/adopted/touch_service.h"
#include "interpose/gpu/copies/pageable_copy.h"
#include "interpose/gpu/copies/peer_copy.h"
#include "interpose/gpu/work/graph_frees.h"
#include "interpose/gpu/work/graph_memory.h"
#include "interpose/gpu/work/queued_uses.h"
#include "runtime/base/options.h"
#include "runtime/base/thread_safety.h"
#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

class host_calls;

/// Owns the objects that hpe needs in an unmodified CUDA program. The first call that needs the interposer makes it. It
/// is never destroyed, because threads of the program may call the driver until the process ends.
class interposer {
 public:
  /// Returns the interposer, which the first call makes. Returns nullptr if the driver is too old for hpe or an option
  /// is invalid. Throws std::bad_alloc; the next call then tries again.
  static interposer* instance();
  /// Returns the interposer; nullptr if it has not been made yet.
  static interposer* started() noexcept;

  [[nodiscard]] const device::cuda::driver& driver() const noexcept { return cu_; }
  [[nodiscard]] bool scope_is_parameters() const noexcept { return option_.scope == kernel_scope::args; }
  pageable_copy& copies() noexcept { return copies_; }
  peer_copy& peers() noexcept { return peers_; }
  adopted_memory& adopted() noexcept { return adopted_; }
  incoherent_uses& uses() noexcept { return uses_; }
  program_contexts& program() noexcept { return program_; }
  queued_uses& queued() noexcept { return queued_; }
  graph_memory& memory_of_graphs() noexcept { return memory_of_graphs_; }

  /// Make a large copy with copies() or peers(); any_copy copies between any two addresses, box_copied copies a box.
  /// Return nullopt, without effect, if hpe would not be faster than the driver. wait: whether to return only when the
  /// data has arrived, as CUDA demands for some calls. after_all: whether a copy between devices runs after all earlier
  /// work.
  std::optional<CUresult> any_copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream, bool wait);
  std::optional<CUresult> box_copied(CUdeviceptr to, CUdeviceptr from, const box_copy& given, CUstream stream,
                                     bool wait, bool after_all);

  /// To be called before the program frees the allocation that starts at an address, or unmaps a range.
  void gives_back(CUdeviceptr address);
  void gives_back(CUdeviceptr address, std::size_t bytes);

  /// The allocations that graphs of the program free when they run.
  graph_frees& freed_by_graphs() noexcept { return freed_by_graphs_; }
  /// To be called before a graph is launched. The launch may free every allocation that a node of any graph frees.
  void launches_graph();

  /// After this call, CPU code can use the program's device memory. Throws if that fails; the next call then tries
  /// again.
  void serve_touches();

  /// To be called before a context may be destroyed.
  void forget_contexts();

 private:
  interposer();
  /// Whether hpe has a record of memory near an address, which must be removed when the program frees that memory.
  [[nodiscard]] bool may_know(CUdeviceptr address) const;

  const options option_ = options::from_environment();
  const device::cuda::driver cu_;
  contexts contexts_;
  program_contexts program_;
  queued_uses queued_;
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
