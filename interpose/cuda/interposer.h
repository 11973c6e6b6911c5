#pragma once

#include <atomic>
#include <mutex>
#include <set>

#include "interpose/cuda/adopted/adopted_memory.h"
#include "interpose/cuda/adopted/touch_service.h"
#include "interpose/cuda/copies/copy_shapes.h"
#include "interpose/cuda/copies/pageable_copy.h"
#include "interpose/cuda/copies/peer_copy.h"
#include "interpose/cuda/work/graph_memory.h"
#include "interpose/cuda/work/queued_uses.h"
#include "runtime/base/options.h"
#include "runtime/base/thread_safety.h"
#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

class host_calls;

/// hpe's part in an unmodified CUDA program. Made by the first call that needs it and never destroyed, because threads
/// of the program may call until the process ends.
class interposer {
 public:
  /// The interposer, made if needed; nullptr if the driver is too old for hpe or an option is invalid.
  static interposer* instance() noexcept;
  /// The interposer, or nullptr if it has not been made.
  static interposer* started() noexcept;

  [[nodiscard]] const device::cuda::driver& driver() const noexcept { return cu_; }
  [[nodiscard]] bool scope_is_parameters() const noexcept { return option_.scope == "args"; }
  pageable_copy& copies() noexcept { return copies_; }
  peer_copy& peers() noexcept { return peers_; }
  adopted_memory& adopted() noexcept { return adopted_; }
  incoherent_uses& uses() noexcept { return uses_; }
  program_contexts& program() noexcept { return program_; }
  queued_uses& queued() noexcept { return queued_; }
  graph_memory& memory_of_graphs() noexcept { return memory_of_graphs_; }

  /// A large copy between any two addresses, or of rows, by copies() or peers(). Returns nothing, having done nothing,
  /// if hpe would not be faster. wait: returns when the data is there, as CUDA demands for such a call.
  std::optional<CUresult> any_copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream, bool wait);
  std::optional<CUresult> shaped_copy(const copy_shape_of& shape, CUstream stream, bool wait);

  /// To be called before the program frees the allocation that starts at an address, or a range.
  void gives_back(CUdeviceptr address);
  void gives_back(CUdeviceptr address, std::size_t bytes);

  /// A graph of the program frees the allocation at `address` when it runs.
  void graphs_give_back(CUdeviceptr address);
  /// A graph is about to be launched, which may free all allocations that graphs free.
  void launches_graph();

  /// Lets CPU code use the program's device memory after this call.
  void serve_touches();

  /// To be called when a context is about to end.
  void forget_contexts();

 private:
  interposer();

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
  mutex graphs_;
  std::set<CUdeviceptr> given_back_by_graphs_ HPE_GUARDED_BY(graphs_);
  std::atomic<bool> graphs_give_back_{false};  // whether there are any
  std::once_flag serving_;
  std::atomic<host_calls*> calls_{nullptr};
};

}  // namespace hpe::cuda_hooks
