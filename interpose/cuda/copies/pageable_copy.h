#pragma once

/// Large copies between device memory and pageable host memory. The driver stages them with one thread, at 10 to 20
/// GB/s on machines whose link has 55; hpe uses several threads and pinned buffers. The pieces are queued on the
/// program's own stream, so CUDA keeps the order. As in CUDA, a copy from pageable memory returns when the source may
/// be overwritten, and a copy to pageable memory when the data is there.

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "interpose/cuda/work/context_parts.h"
#include "runtime/transfer/copy_crew.h"

namespace hpe::cuda_hooks {

/// The two sides of a copy: a run of bytes, or rows with a pitch on each side.
struct copied_memory {
  CUdeviceptr device = 0;
  std::byte* host = nullptr;
  std::size_t width = 0;  ///< bytes of a row, or of the run
  std::size_t rows = 1;
  std::size_t device_pitch = 0;
  std::size_t host_pitch = 0;

  [[nodiscard]] std::size_t bytes() const noexcept { return width * rows; }
  /// Bytes from the first byte to the end of the last row.
  [[nodiscard]] std::size_t device_extent() const noexcept { return (rows - 1) * device_pitch + width; }
  [[nodiscard]] std::size_t host_extent() const noexcept { return (rows - 1) * host_pitch + width; }
};

/// Thread safe.
class pageable_copy {
 public:
  /// The driver is as fast for smaller copies, which are left to it.
  static constexpr std::size_t smallest = std::size_t{1} << 20;

  pageable_copy(const device::cuda::driver& cu, contexts& all) : cu_(cu), contexts_(all) {}

  /// Copies and returns the result, or returns nothing, having done nothing, if hpe does not improve this copy.
  /// `stream` must be one of the current context. wait: returns when the data is there.
  std::optional<CUresult> upload(const copied_memory& what, CUstream stream, bool wait);
  std::optional<CUresult> download(const copied_memory& what, CUstream stream);
  std::optional<CUresult> upload(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream, bool wait) {
    return upload({to, static_cast<std::byte*>(const_cast<void*>(from)), bytes}, stream, wait);
  }
  std::optional<CUresult> download(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
    return download({from, static_cast<std::byte*>(to), bytes}, stream);
  }
  /// For driver entries that accept any two addresses.
  std::optional<CUresult> copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream, bool wait);

 private:
  // Making the buffers takes as long as the driver needs to copy about this much.
  static constexpr std::uint64_t worth_buffers = std::uint64_t{64} << 20;

  [[nodiscard]] bool suitable(const copied_memory& what, CUstream stream) const;
  CUresult queue_piece(const copied_memory& what, std::size_t at, std::size_t bytes, std::byte* through,
                       CUstream stream, bool up) const;
  transfer::copy_crew::pending begin_piece(const copied_memory& what, std::size_t at, std::size_t bytes,
                                           std::byte* through, bool up, transfer::copy_crew::writing how);
  std::shared_ptr<context_parts> parts_for(std::size_t bytes);
  [[nodiscard]] bool is_pageable(const void* host, std::size_t bytes) const;
  [[nodiscard]] std::size_t bytes_from(CUdeviceptr address) const;

  const device::cuda::driver& cu_;
  contexts& contexts_;
  transfer::copy_crew crew_{transfer::copy_crew::threads_for_this_machine() - 1};
  std::atomic<std::uint64_t> seen_{0};  // bytes of copies that could have been staged
};

}  // namespace hpe::cuda_hooks
