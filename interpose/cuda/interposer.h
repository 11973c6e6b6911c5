#pragma once

#include <atomic>
#include <mutex>
#include <set>

#include "interpose/cuda/adopted_memory.h"
#include "interpose/cuda/copy_shapes.h"
#include "interpose/cuda/pageable_copy.h"
#include "interpose/cuda/peer_copy.h"
#include "interpose/cuda/touch_service.h"
#include "runtime/base/options.h"
#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

class host_calls;

/// What hpe does inside an unmodified CUDA program. Starts with the first call that has work for it and is never
/// destroyed: threads of the program may come to the very end.
class interposer {
 public:
  /// nullptr where the driver is too old for hpe, which then takes no part.
  static interposer* instance() noexcept;
  /// The same, without starting it.
  static interposer* started() noexcept;

  [[nodiscard]] const device::cuda::driver& driver() const noexcept { return cu_; }
  [[nodiscard]] bool scope_is_parameters() const noexcept { return option_.scope == "args"; }
  pageable_copy& copies() noexcept { return copies_; }
  peer_copy& peers() noexcept { return peers_; }
  adopted_memory& adopted() noexcept { return adopted_; }
  incoherent_uses& uses() noexcept { return uses_; }
  program_contexts& program() noexcept { return program_; }

  /// A large copy between any two addresses, of rows perhaps, by one of the ways above; empty if it gains by none, and
  /// nothing was done. wait: until the data is there, as CUDA has it.
  std::optional<CUresult> any_copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream, bool wait);
  std::optional<CUresult> shaped_copy(const copy_shape_of& shape, CUstream stream, bool wait);

  /// The program gives memory back: what starts at an address, or a range.
  void gives_back(CUdeviceptr address);
  void gives_back(CUdeviceptr address, std::size_t bytes);

  /// Some graph of the program gives memory back when it runs: what starts at an address.
  void graphs_give_back(CUdeviceptr address);
  /// A graph is about to be launched, and may give back all such memory.
  void launches_graph();

  /// Lets CPU code use the device memory of the program from now on.
  void serve_touches();

  /// Some context is about to end.
  void forget_contexts();

 private:
  interposer();

  const options option_ = options::from_environment();
  const device::cuda::driver cu_;
  contexts contexts_;
  program_contexts program_;
  incoherent_uses uses_;
  pageable_copy copies_;
  peer_copy peers_;
  adopted_memory adopted_;
  std::mutex graphs_;
  std::set<CUdeviceptr> given_back_by_graphs_;  // guarded by graphs_
  std::atomic<bool> graphs_give_back_{false};   // whether there are any
  std::once_flag serving_;
  std::atomic<host_calls*> calls_{nullptr};
};

}  // namespace hpe::cuda_hooks
