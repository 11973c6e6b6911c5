#pragma once

/// Lets CPU code use device memory that the program got from the driver itself. At the host's first touch, hpe asks the
/// driver for the allocation at the address. From then on the memory is coherent with all device work of the program,
/// by the protocol of runtime/coherence: a touch waits for the work queued so far and fetches the data; before device
/// work, hpe uploads the bytes that the host has written, and closes the views of memory that the work may write.
/// Managed memory stays with the driver.
///
/// If the host walks through memory, the next blocks are fetched ahead, as in runtime/fault. Host pages that are filled
/// a second time are pinned, up to a tenth of the machine's memory.

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <span>

#include "interpose/cuda/adopted/adopted_region.h"
#include "interpose/cuda/adopted/granule_marks.h"
#include "interpose/cuda/adopted/incoherent_uses.h"
#include "interpose/cuda/copies/pageable_copy.h"
#include "interpose/cuda/work/program_contexts.h"
#include "runtime/base/thread_safety.h"
#include "runtime/fault/request_board.h"

namespace hpe::cuda_hooks {

/// Memory that one piece of device work uses.
struct used_range {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  bool written = false;
};

/// Thread safe, except where told.
class adopted_memory {
 public:
  /// Device work from before its driver call until after the call. The driver is called without a lock, because two
  /// calls may wait for each other. Views of memory that the work writes do not open meanwhile: the work is not in the
  /// queues of the devices yet, so a wait for the devices would not cover it.
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

    adopted_region::bytes written_{0, 0};  // contains all bytes that the work writes
    work_in_flight* next_ = nullptr;
    work_in_flight* previous_ = nullptr;
  };

  adopted_memory(const device::cuda::driver& cu, contexts& parts, program_contexts& program, pageable_copy& copies,
                 incoherent_uses& uses)
      : cu_(cu), parts_(parts), program_(program), copies_(copies), uses_(uses) {}

  /// Whether the host has touched any device memory. This load is the only cost for programs that never do.
  static bool any() noexcept { return touched_regions.load(std::memory_order_relaxed) != 0; }

  /// The host touches an address: fetches the data and opens the view. Returns not_ours if the address is no device
  /// memory, or if the fetch fails, which is logged. One thread of hpe calls touch and fetch_ahead.
  fault::verdict touch(CUdeviceptr address, bool write) noexcept;
  /// Fetches some of the blocks that a walking host will touch next. False if there is nothing to fetch.
  bool fetch_ahead() noexcept;

  /// For system calls and MPI, which do not touch the memory themselves, on memory that the host has touched. read
  /// copies the bytes as they are after all work queued so far. write stores bytes so that the host and device work
  /// queued from now on see them. The range lies in one allocation. Both throw hpe::error.
  void read(void* to, CUdeviceptr from, std::size_t bytes);
  void write(CUdeviceptr to, const void* from, std::size_t bytes);
  /// How many bytes from an address on belong to its allocation; 0 if there is no device memory. Asks the driver.
  [[nodiscard]] std::size_t bytes_from(CUdeviceptr address) const;

  /// Marks the granules of memory that the host has touched.
  [[nodiscard]] const granule_marks& marks() const noexcept { return marks_; }

  /// The caller queues device work between begin_work and end_work. The work may use any memory, or only these ranges.
  /// After an error the caller must neither queue the work nor call end_work; no data of the host is lost.
  CUresult begin_work(work_in_flight& work) noexcept;
  CUresult begin_work(work_in_flight& work, std::span<const used_range> ranges) noexcept;
  /// begin_work for work that may use the whole of each region that contains one of these addresses.
  CUresult begin_work(work_in_flight& work, std::span<const CUdeviceptr> addresses) noexcept;
  void end_work(work_in_flight& work) noexcept;

  /// Whether the host has touched any byte of a range, or memory that shares a page with the range.
  [[nodiscard]] bool has_touched(CUdeviceptr begin, CUdeviceptr end);
  /// The touched region in which an address lies; empty if there is none.
  [[nodiscard]] adopted_region::bytes touched(CUdeviceptr address);

  /// The program frees [address, address + bytes).
  void drop(CUdeviceptr address, std::size_t bytes) noexcept;
  /// Contexts may end, and their memory with them: drops all regions.
  void drop_all() noexcept;

 private:
  using region_pointer = std::shared_ptr<adopted_region>;
  using regions = std::map<CUdeviceptr, region_pointer>;  // by end

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
  void wait_for_work(const adopted_region& r) HPE_REQUIRES(mutex_);
  void explain(CUdeviceptr address) const HPE_REQUIRES(mutex_);
  template <class Release>
  CUresult begin_work_after(work_in_flight& work, Release release_used) noexcept;
  /// Whether work that writes some of the bytes is being queued, or work that began before the first touch may be.
  [[nodiscard]] bool being_queued(adopted_region::bytes range) const noexcept HPE_REQUIRES(mutex_);
  /// Waits until being_queued(range) is false.
  void wait_until_queued(unique_lock& lock, adopted_region::bytes range) HPE_REQUIRES(mutex_);

  inline static constinit std::atomic<std::uint32_t> touched_regions{0};

  const device::cuda::driver& cu_;
  contexts& parts_;
  program_contexts& program_;
  pageable_copy& copies_;
  incoherent_uses& uses_;

  mutex fetching_;  // held during a fetch
  mutex mutex_ HPE_ACQUIRED_AFTER(fetching_);
  condition_variable moved_;
  condition_variable queued_;                               // some work in flight has been queued
  work_in_flight* first_ HPE_GUARDED_BY(mutex_) = nullptr;  // list of the work in flight
  bool unseen_ HPE_GUARDED_BY(mutex_) = false;              // work that began before the first touch may be in flight
  regions regions_ HPE_GUARDED_BY(mutex_);
  granule_marks marks_;  // changed with the mutex only
  struct wish {
    std::weak_ptr<adopted_region> region;
    coherence::block_run run;
  };
  std::deque<wish> ahead_ HPE_GUARDED_BY(mutex_);
  std::deque<adopted_region::bytes> ended_ HPE_GUARDED_BY(mutex_);  // regions that ended with their contexts
  std::uint64_t work_ HPE_GUARDED_BY(mutex_) = 0;                   // pieces of device work that have been queued
  std::uint64_t waited_ HPE_GUARDED_BY(mutex_) = 0;  // how many of these are done; both count while any()
};

}  // namespace hpe::cuda_hooks
