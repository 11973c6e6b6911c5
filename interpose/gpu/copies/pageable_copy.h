#pragma once

/// Makes large copies between device memory and pageable host memory. The driver stages these copies with one thread,
/// at 10 to 20 GB/s on machines whose link transfers 55 GB/s; hpe uses several threads and pinned buffers. The pieces
/// of a copy are queued on the program's own stream, so CUDA keeps the order. As in CUDA, a copy from pageable memory
/// returns when the source may be overwritten, and a copy to pageable memory returns when the data has arrived.

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "interpose/gpu/work/context_parts.h"
#include "runtime/base/box.h"
#include "runtime/transfer/copy_crew.h"

namespace hpe::cuda_hooks {

/// Thread safe.
class pageable_copy {
 public:
  /// hpe leaves smaller copies to the driver, which copies them just as fast.
  static constexpr std::size_t smallest = std::size_t{1} << 20;

  pageable_copy(const device::cuda::driver& cu, contexts& all) : cu_(cu), contexts_(all) {}

  /// Makes the copy and returns its result; returns nullopt, without effect, if hpe cannot make this copy faster.
  /// `stream` must belong to the current context. wait: whether to return only when the data has arrived on the device.
  std::optional<CUresult> upload(CUdeviceptr to, const void* from, const box_copy& shape, CUstream stream, bool wait);
  std::optional<CUresult> download(void* to, CUdeviceptr from, const box_copy& shape, CUstream stream);
  std::optional<CUresult> upload(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream, bool wait) {
    return upload(to, from, box_copy{{bytes}}, stream, wait);
  }
  std::optional<CUresult> download(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
    return download(to, from, box_copy{{bytes}}, stream);
  }
  /// Like upload or download, whichever the two addresses require; for entries of the driver that accept any two
  /// addresses.
  std::optional<CUresult> copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream, bool wait);

 private:
  // hpe makes its buffers only after so many bytes of copies: the driver copies them in about the time that hpe needs
  // to make the buffers.
  static constexpr std::uint64_t worth_buffers = std::uint64_t{64} << 20;

  /// The device side and the host side of a copy of one plane.
  struct sides {
    CUdeviceptr device;
    std::byte* host;
    box in_device, in_host;

    [[nodiscard]] const box_extent& extent() const noexcept { return in_device.extent; }
  };
  [[nodiscard]] bool suitable(const sides& what, CUstream stream) const;
  CUresult queue_piece(const sides& what, std::size_t at, std::size_t bytes, std::byte* through, CUstream stream,
                       bool up) const;
  transfer::copy_crew::pending begin_piece(const sides& what, std::size_t at, std::size_t bytes, std::byte* through,
                                           bool up, transfer::copy_crew::writing how);
  std::shared_ptr<context_parts> parts_for(std::size_t bytes);
  [[nodiscard]] bool is_pageable(const void* host, std::size_t bytes) const;
  [[nodiscard]] std::size_t bytes_from(CUdeviceptr address) const;

  const device::cuda::driver& cu_;
  contexts& contexts_;
  transfer::copy_crew crew_{transfer::copy_crew::threads_for_this_machine() - 1};
  std::atomic<std::uint64_t> seen_{0};  // the number of bytes in all earlier copies that hpe could have staged
};

}  // namespace hpe::cuda_hooks
