#pragma once

/// Lets CPU code use device memory that the program allocated through the driver. When CPU code first touches memory of
/// this kind, hpe asks the driver which allocation contains the address. From then on, the protocol of
/// runtime/coherence keeps this memory (an adopted region) coherent with all device work of the program. A touch waits
/// for the device work queued so far and copies the data to host memory ("fetches" it). Before the program queues
/// device work, hpe uploads the bytes that CPU code has written, and closes the views (CPU mappings) of memory that the
/// work may write. hpe does not adopt managed memory: the driver itself keeps it coherent.
///
/// If CPU code walks through memory, hpe fetches the next blocks before CPU code touches them, as runtime/fault does.
/// When hpe has fetched more bytes into a region's host pages than the region contains, it pins these pages, up to a
/// tenth of the machine's memory in total.

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <span>

#include "interpose/gpu/adopted/adopted_region.h"
#include "interpose/gpu/adopted/granule_marks.h"
#include "interpose/gpu/adopted/incoherent_uses.h"
#include "interpose/gpu/copies/pageable_copy.h"
#include "interpose/gpu/work/deferred_copies.h"
#include "interpose/gpu/work/device_range.h"
#include "interpose/gpu/work/program_contexts.h"
#include "runtime/base/box.h"
#include "runtime/base/thread_safety.h"
#include "runtime/fault/request_board.h"
#include "runtime/os/signals.h"

namespace hpe::cuda_hooks {

/// Thread safe, except touch() and fetch_ahead().
class adopted_memory {
 public:
  /// Represents a piece of device work while a thread queues it: the object exists from before the driver's call until
  /// after the call. No lock is held during the call, because two calls of the driver may wait for each other. While
  /// the object exists, the views of memory that the work writes stay closed, because a wait for the device might not
  /// include this work yet.
  class work_in_flight {
   public:
    work_in_flight() = default;
    ~work_in_flight() = default;
    work_in_flight(const work_in_flight&) = delete;
    work_in_flight& operator=(const work_in_flight&) = delete;

   private:
    friend adopted_memory;
    void may_write(adopted_region::bytes range) noexcept {
      const bool none = written_.begin == written_.end;
      written_ = none ? range
                      : adopted_region::bytes{std::min(written_.begin, range.begin), std::max(written_.end, range.end)};
    }
    [[nodiscard]] bool writes(adopted_region::bytes range) const noexcept {
      return written_.begin < range.end && range.begin < written_.end;
    }

    adopted_region::bytes written_{0, 0};  // the smallest range that contains all bytes that the work may write
    work_in_flight* next_ = nullptr;
    work_in_flight* previous_ = nullptr;
  };

  adopted_memory(const device::cuda::driver& cu, contexts& parts, program_contexts& program, pageable_copy& copies,
                 incoherent_uses& uses, deferred_copies& deferred)
      : cu_(cu), parts_(parts), program_(program), copies_(copies), uses_(uses), deferred_(deferred) {}

  /// Whether there is any adopted region: device memory that CPU code has touched and that the program has not freed.
  /// In programs whose CPU code never touches device memory, adopted memory costs only the load in this function.
  static bool any() noexcept { return touched_regions.load(std::memory_order_relaxed) != 0; }

  /// Serves a page fault of CPU code at an address: fetches the data and opens the view. Returns not_ours if the
  /// address is not in device memory, or if the fetch fails; logs a failure. Only hpe's service thread calls touch and
  /// fetch_ahead.
  os::fault_verdict touch(CUdeviceptr address, bool write) noexcept;
  /// Fetches some of the blocks that CPU code is expected to touch next on its walk through memory. Returns false if no
  /// block remains to be fetched.
  bool fetch_ahead() noexcept;

  /// Access device memory on behalf of system calls and MPI, which must not use the views of adopted regions. Both
  /// functions first adopt memory that CPU code has not touched. `read` copies the bytes as they are after all device
  /// work queued so far. `write` stores bytes that CPU code, and device work queued after this call, see. The range
  /// must be in one allocation. Both functions throw hpe::error.
  void read(void* to, CUdeviceptr from, std::size_t bytes);
  void write(CUdeviceptr to, const void* from, std::size_t bytes);
  /// The number of bytes from an address to the end of its allocation; 0 if the address is not in device memory. Calls
  /// the driver.
  [[nodiscard]] std::size_t bytes_from(CUdeviceptr address) const;

  /// The marks of the granules that contain memory which CPU code has touched.
  [[nodiscard]] const granule_marks& marks() const noexcept { return marks_; }

  /// The caller calls begin_work, queues device work, and calls end_work. Without `ranges`, the work may use any
  /// memory; otherwise it may use only these ranges. If begin_work returns an error, the caller must neither queue the
  /// work nor call end_work; the bytes that CPU code has written are not lost.
  CUresult begin_work(work_in_flight& work) noexcept;
  CUresult begin_work(work_in_flight& work, std::span<const used_range> ranges) noexcept;
  /// Like begin_work(work, ranges), for work that may use all bytes of each region that contains one of `addresses`, or
  /// the address of a recorded texture (see incoherent_uses).
  CUresult begin_work(work_in_flight& work, std::span<const CUdeviceptr> addresses) noexcept;
  void end_work(work_in_flight& work) noexcept;

  /// Whether the range overlaps an adopted region.
  [[nodiscard]] bool has_touched(CUdeviceptr begin, CUdeviceptr end);
  /// Returns the touched region that contains an address; empty if no touched region does.
  [[nodiscard]] adopted_region::bytes touched(CUdeviceptr address);
  /// To be called when the MPI library gets memory that it transfers itself (adopted_pointers.h).
  void left_to_library(CUdeviceptr address) noexcept;

  /// To be called when the program frees [address, address + bytes).
  void drop(CUdeviceptr address, std::size_t bytes) noexcept;
  /// To be called before contexts, and their memory with them, may be destroyed: drops all regions.
  void drop_all() noexcept;

 private:
  using region_pointer = std::shared_ptr<adopted_region>;
  using regions = std::map<CUdeviceptr, region_pointer>;  // the key is the end of the region

  region_pointer find(CUdeviceptr address) HPE_REQUIRES(mutex_);
  region_pointer adopt(CUdeviceptr address) HPE_REQUIRES(mutex_);
  region_pointer find_or_adopt(CUdeviceptr address) HPE_REQUIRES(mutex_);
  region_pointer require(CUdeviceptr address) HPE_REQUIRES(mutex_);
  regions::iterator remove(regions::iterator r) HPE_REQUIRES(mutex_);

  void fetch(unique_lock& lock, const region_pointer& r, coherence::block_run run) HPE_REQUIRES(fetching_, mutex_);
  void open_fetched(adopted_region& r, coherence::block_run run, coherence::block_run markers, bool write);
  void open(adopted_region& r, coherence::block_run run, coherence::block_event event);
  void release(adopted_region& r, coherence::block_event event, CUdeviceptr begin, CUdeviceptr end);
  void move(adopted_region& r, adopted_region::bytes range, bool to_device);
  void copy(adopted_region& r, CUdeviceptr device, void* host, std::size_t bytes, bool to_device);
  /// Waits for all work that the program has queued so far, and for deferred_copies, with the mutex unlocked. Does not
  /// throw if the wait fails; the failure is logged or reported as an incoherent use.
  void wait_for_work(const adopted_region& r) HPE_REQUIRES(mutex_);
  void explain(CUdeviceptr address) const HPE_REQUIRES(mutex_);
  template <class Release>
  CUresult begin_work_after(work_in_flight& work, Release release_used) noexcept;
  /// Whether a thread is queuing work that writes some of the bytes, or may be queuing work that it began to queue
  /// before CPU code first touched device memory.
  [[nodiscard]] bool being_queued(adopted_region::bytes range) const noexcept HPE_REQUIRES(mutex_);
  /// Waits until being_queued(range) is false.
  void wait_until_queued(unique_lock& lock, adopted_region::bytes range) HPE_REQUIRES(mutex_);

  inline static constinit std::atomic<std::uint32_t> touched_regions{0};

  const device::cuda::driver& cu_;
  contexts& parts_;
  program_contexts& program_;
  pageable_copy& copies_;
  incoherent_uses& uses_;
  deferred_copies& deferred_;

  mutex fetching_;  // locked during each fetch, so that fetches run one after another
  mutex mutex_ HPE_ACQUIRED_AFTER(fetching_);
  condition_variable moved_;
  condition_variable queued_;                               // notified when a thread has queued a piece of work
  work_in_flight* first_ HPE_GUARDED_BY(mutex_) = nullptr;  // the list of work that threads are queuing
  // Whether threads may be queuing work that they began to queue before CPU code first touched device memory.
  bool unseen_ HPE_GUARDED_BY(mutex_) = false;
  regions regions_ HPE_GUARDED_BY(mutex_);
  granule_marks marks_;  // changed only with the mutex locked
  struct wish {
    std::weak_ptr<adopted_region> region;
    coherence::block_run run;
  };
  std::deque<wish> ahead_ HPE_GUARDED_BY(mutex_);
  std::deque<adopted_region::bytes> ended_ HPE_GUARDED_BY(mutex_);  // regions whose contexts have ended, for explain()
  std::uint64_t work_ HPE_GUARDED_BY(mutex_) = 0;  // the number of pieces of work that were queued while any() was true
  std::uint64_t waited_ HPE_GUARDED_BY(mutex_) = 0;  // the number of these pieces of work that are known to be done
};

}  // namespace hpe::cuda_hooks
