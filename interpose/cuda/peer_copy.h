#pragma once

/// Large copies between devices that do not reach each other's memory (no peer access, or none enabled). The driver
/// stages them through host memory, one way after the other; here a piece goes up while the next one comes down, and
/// copies of both directions run at once. Everything is queued: no thread of the host takes part, and the copy stands
/// in the order of the program's stream as one piece of work.

#include <optional>

#include "interpose/cuda/context_parts.h"

namespace hpe::cuda_hooks {

/// Any thread.
class peer_copy {
 public:
  /// Below this the driver is as fast, and nothing is done.
  static constexpr std::size_t smallest = std::size_t{1} << 20;

  peer_copy(const device::cuda::driver& cu, contexts& all) : cu_(cu), contexts_(all) {}

  /// Queues the copy, and says what came of it; empty if it is not one that gains, and nothing was done.
  std::optional<CUresult> copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream);
  /// The same in the order of all work of the current context and of the two of the devices, as cuMemcpyPeer has it.
  std::optional<CUresult> copy_after_all(CUdeviceptr to, CUdeviceptr from, std::size_t bytes);

 private:
  struct ends {
    CUcontext to;
    CUcontext from;
  };
  [[nodiscard]] std::optional<ends> unconnected(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) const;
  [[nodiscard]] std::optional<CUcontext> context_of(CUdeviceptr address, std::size_t bytes) const;
  [[nodiscard]] bool reaches(CUcontext context, CUdeviceptr address) const;
  std::optional<CUresult> copy_between(const ends& e, CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                                       CUstream stream);
  CUresult record(CUcontext context, CUstream stream, CUevent& made) const;
  CUresult follow(CUcontext context, CUstream before, CUcontext after_context, CUstream after) const;

  const device::cuda::driver& cu_;
  contexts& contexts_;
};

}  // namespace hpe::cuda_hooks
