#pragma once

/// Executes large copies between device memory and pageable host memory. The driver stages these copies with one
/// thread, at 10 to 20 GB/s on machines whose link transfers 55 GB/s. hpe is faster because it uses several threads and
/// pinned buffers. hpe queues the chunks of a copy on the program's own stream, so the copy is ordered with the other
/// work on this stream. As in CUDA, the call returns when the program may overwrite the source (copy from pageable
/// memory), or when the data has arrived (copy to pageable memory).

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
  /// hpe leaves copies of fewer bytes to the driver, which is as fast.
  static constexpr std::size_t smallest = std::size_t{1} << 20;

  pageable_copy(const device::cuda::driver& cu, contexts& all) : cu_(cu), contexts_(all) {}

  /// Executes the copy and returns the result for the program's call; returns nullopt, without effect, if hpe is not
  /// faster than the driver or does not support the copy. If `wait` is true, returns only when the data has arrived on
  /// the device.
  std::optional<CUresult> upload(CUdeviceptr to, const void* from, const box_copy& shape, CUstream stream, bool wait);
  std::optional<CUresult> download(void* to, CUdeviceptr from, const box_copy& shape, CUstream stream);
  std::optional<CUresult> upload(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream, bool wait) {
    return upload(to, from, box_copy{{bytes}}, stream, wait);
  }
  std::optional<CUresult> download(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
    return download(to, from, box_copy{{bytes}}, stream);
  }
  /// Like upload or download, depending on which of the addresses is in device memory. For entries of the driver that
  /// accept any two addresses.
  std::optional<CUresult> copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream, bool wait);

  /// To be called after the program has pinned a buffer. Starts the threads that help copy_on_host(), if it is large.
  void has_pinned(std::size_t bytes) noexcept;

  /// Copies in host memory if CPU code fills or empties its own pinned buffer. Returns false, without effect, if
  /// neither range is in memory that the program has pinned, or if no threads help, because neither has_pinned() nor
  /// an upload or download has started them. So the copy itself allocates no memory. Does not call the driver. Signals
  /// must be blocked.
  bool copy_on_host(void* to, const void* from, std::size_t bytes) noexcept;

 private:
  // hpe allocates its buffers only after the program has copied this number of bytes: the driver copies these bytes in
  // about the time that hpe needs to allocate and pin the buffers.
  static constexpr std::uint64_t worth_buffers = std::uint64_t{64} << 20;

  /// The device side and the host side of a copy of one plane.
  struct sides {
    CUdeviceptr device;
    std::byte* host;
    box in_device, in_host;

    [[nodiscard]] const box_extent& extent() const noexcept { return in_device.extent; }
  };
  [[nodiscard]] bool suitable(const sides& what, CUstream stream) const;
  CUresult queue_chunk(const sides& what, std::size_t at, std::size_t bytes, std::byte* through, CUstream stream,
                       bool up) const;
  transfer::copy_crew::pending begin_chunk(const sides& what, std::size_t at, std::size_t bytes, std::byte* through,
                                           bool up, transfer::copy_crew& crew, transfer::copy_crew::writing how);
  /// How a large copy writes its bytes to the program's memory. Prepares new memory for huge pages.
  static transfer::copy_crew::writing writing_to(void* host, std::size_t bytes);
  transfer::copy_crew& crew_for(transfer::copy_crew::writing how) noexcept {
    return how == transfer::copy_crew::writing::to_new_pages ? crew_for_new_pages_ : crew_;
  }
  /// Returns hpe's objects in the current context for a copy; null if hpe leaves the copy to the driver.
  std::shared_ptr<context_parts> parts_for(const sides& what, CUstream stream);
  [[nodiscard]] bool is_pageable(const void* host, std::size_t bytes) const;
  [[nodiscard]] std::size_t bytes_from(CUdeviceptr address) const;

  const device::cuda::driver& cu_;
  contexts& contexts_;
  transfer::copy_crew crew_{transfer::copy_crew::threads_for_this_machine() - 1};
  // Also copies from sources that need page faults.
  transfer::copy_crew crew_for_new_pages_{transfer::copy_crew::threads_for_new_pages() - 1};
  std::atomic<std::uint64_t> seen_{0};  // the number of bytes in all earlier copies that hpe could have staged
};

}  // namespace hpe::cuda_hooks
