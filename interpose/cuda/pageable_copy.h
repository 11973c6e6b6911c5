#pragma once

/// Large copies between device memory and pageable host memory. The driver stages them with one thread, at 10 to 20
/// GB/s on machines whose link does 55; here several threads do, through pinned buffers. They are queued on the
/// program's own stream, so CUDA's order is kept by CUDA. As CUDA has it: a copy from pageable memory returns when the
/// source may be overwritten, a copy to it when the data is there.

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "interpose/cuda/pinned_ring.h"
#include "runtime/transfer/copy_crew.h"

namespace hpe::cuda_hooks {

/// Any thread.
class pageable_copy {
 public:
  /// Below this the driver is as fast, and nothing is done.
  static constexpr std::size_t smallest = std::size_t{1} << 20;

  explicit pageable_copy(const device::cuda::driver& cu) : cu_(cu), rings_(cu) {}

  /// Copies, and says what came of it; empty if the copy is not one that gains by it, and nothing was done. stream is
  /// one of the current context. wait: until the data is there.
  std::optional<CUresult> upload(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream, bool wait);
  std::optional<CUresult> download(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream);
  /// For entries that take any two addresses.
  std::optional<CUresult> copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream, bool wait);

  pinned_rings& rings() noexcept { return rings_; }

 private:
  // Making the buffers takes as long as the driver takes for about that much.
  static constexpr std::uint64_t worth_buffers = std::uint64_t{64} << 20;

  bool suitable(CUdeviceptr device, const void* host, std::size_t bytes, CUstream stream) const;
  std::shared_ptr<pinned_ring> ring_for(std::size_t bytes);
  [[nodiscard]] bool is_pageable(const void* host, std::size_t bytes) const;
  [[nodiscard]] bool is_device(CUdeviceptr address) const;
  void copy_on_host(void* to, const void* from, std::size_t bytes, transfer::copy_crew::writing how);

  const device::cuda::driver& cu_;
  pinned_rings rings_;
  transfer::copy_crew crew_;
  std::once_flag crew_started_;
  std::atomic<std::uint64_t> seen_{0};  // bytes that might have been staged
};

}  // namespace hpe::cuda_hooks
