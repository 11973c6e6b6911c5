#pragma once

/// Large copies between devices that cannot access each other's memory (without peer access, or with it disabled). The
/// driver stages them through host memory, in one direction at a time; hpe uploads one piece while the next is
/// downloaded. All of it is queued: no host thread takes part, and the copy is one piece of work in the order of the
/// program's stream.

#include <optional>

#include "interpose/cuda/work/context_parts.h"

namespace hpe::cuda_hooks {

/// Thread safe.
class peer_copy {
 public:
  /// The driver is as fast for smaller copies, which are left to it.
  static constexpr std::size_t smallest = std::size_t{1} << 20;

  peer_copy(const device::cuda::driver& cu, contexts& all) : cu_(cu), contexts_(all) {}

  /// Queues the copy and returns the result, or returns nothing, having done nothing, if hpe does not improve this
  /// copy.
  std::optional<CUresult> copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream);
  /// Queues the copy after all work of the current context and of the contexts of both devices, like cuMemcpyPeer.
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
