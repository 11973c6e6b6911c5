#pragma once

/// Device memory that the program got from the driver itself, in CPU code. It is known to hpe from the host's first
/// touch on: the driver is asked what lies at the address. From then on it is coherent with all device work of the
/// program, by the protocol of runtime/coherence: a touch waits for the work queued so far and brings the data; device
/// work first takes back what the host has written, and closes the views of what it may write. Managed memory stays the
/// driver's.

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "interpose/cuda/adopted_region.h"
#include "interpose/cuda/pageable_copy.h"
#include "runtime/fault/request_board.h"

namespace hpe::cuda_hooks {

/// Memory that one piece of device work uses.
struct used_range {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  bool written = false;
};

/// Any thread.
class adopted_memory {
 public:
  adopted_memory(const device::cuda::driver& cu, pageable_copy& copies) : cu_(cu), copies_(copies) {}

  /// Whether the host has touched any. The one thing that programs which never do pay for.
  static bool any() noexcept { return touched_regions.load(std::memory_order_relaxed) != 0; }

  /// The host touches an address: brings the data and opens the view. not_ours: this is no device memory, or its data
  /// cannot be had, which the log tells. From one thread, which is not the program's.
  fault::verdict touch(CUdeviceptr address, bool write) noexcept;

  /// Device work that may use any memory, or only these ranges, is queued between the two: no view opens meanwhile.
  /// Tells what failed, and then the work must not be queued; nothing of the host's data is lost.
  CUresult begin_work() noexcept;
  CUresult begin_work(std::span<const used_range> ranges) noexcept;
  /// The same for work that may use all of each region in which one of these addresses lies.
  CUresult begin_work(std::span<const CUdeviceptr> addresses) noexcept;
  void end_work() noexcept;

  /// Whether the host has touched memory of the region in which an address lies.
  [[nodiscard]] bool touched(CUdeviceptr address) {
    const std::lock_guard lock(mutex_);
    return find(address) != nullptr;
  }

  /// The program gives memory back: [address, address + bytes), or whatever there is.
  void drop(CUdeviceptr address, std::size_t bytes) noexcept;
  void drop_all() noexcept;
  /// What starts at an address, 0 if nothing does.
  [[nodiscard]] std::size_t size_at(CUdeviceptr address) const noexcept;

 private:
  using regions = std::map<CUdeviceptr, std::unique_ptr<adopted_region>>;  // by end

  adopted_region* find(CUdeviceptr address);
  adopted_region* adopt(CUdeviceptr address);
  void fetch(std::unique_lock<std::mutex>& lock, adopted_region& r, coherence::block_run run, bool write);
  void open(adopted_region& r, coherence::block_run run, coherence::block_event event);
  void release(adopted_region& r, coherence::block_event event, CUdeviceptr begin, CUdeviceptr end);
  void move(const adopted_region& r, adopted_region::bytes range, bool to_device);
  void move_piece(const adopted_region& r, CUdeviceptr begin, CUdeviceptr end, bool to_device, CUstream stream);
  template <class Release>
  CUresult begin_work_after(Release release_used) noexcept;
  regions::iterator remove(regions::iterator r);
  void wait_for_devices(CUcontext also);
  template <class Visit>
  void for_each_primary_context(Visit visit) const;
  CUstream stream_of(CUcontext context);

  inline static constinit std::atomic<std::uint32_t> touched_regions{0};

  const device::cuda::driver& cu_;
  pageable_copy& copies_;
  std::mutex mutex_;
  regions regions_;
  std::uint64_t work_ = 0;    // pieces of device work so far
  std::uint64_t waited_ = 0;  // of which these are done; both count while any() holds
  std::mutex streams_mutex_;
  std::map<CUcontext, CUstream> streams_;
};

}  // namespace hpe::cuda_hooks
