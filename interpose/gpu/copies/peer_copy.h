#pragma once

/// Executes large copies between devices that cannot access each other's memory, because peer access is not supported
/// or not enabled. The driver stages these copies through host memory, in one direction at a time; hpe uploads one
/// chunk while it downloads the next chunk. hpe queues all chunks at once, so no CPU thread has to wait for the copy,
/// and orders the copy on the program's stream like a single piece of work.

#include <optional>

#include "interpose/gpu/work/context_parts.h"

namespace hpe::cuda_hooks {

/// Thread safe.
class peer_copy {
 public:
  /// hpe leaves copies of fewer bytes to the driver, which is as fast.
  static constexpr std::size_t smallest = std::size_t{1} << 20;

  peer_copy(const device::cuda::driver& cu, contexts& all) : cu_(cu), contexts_(all) {}

  /// Queues the copy and returns the result for the program's call; returns nullopt, without effect, if hpe is not
  /// faster than the driver or does not support the copy.
  std::optional<CUresult> copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream);
  /// Like copy(), but the copy begins after all earlier work of the current context and of the contexts of both
  /// devices, as with cuMemcpyPeer. Returns when the copy is done.
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
