#pragma once

/// Device memory that the program got from the driver itself, in CPU code. It is known to hpe from the host's first
/// touch on: the driver is asked what lies at the address. From then on it is coherent with all device work of the
/// program, by the protocol of runtime/coherence: a touch waits for the work queued so far and brings the data; device
/// work first takes back what the host has written, and closes the views of what it may write. Managed memory stays the
/// driver's.
///
/// A host that walks through memory is fetched ahead of, as in runtime/fault. Host pages that are filled a second time
/// are pinned, within a tenth of the machine's memory.

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "interpose/cuda/adopted_region.h"
#include "interpose/cuda/granule_marks.h"
#include "interpose/cuda/incoherent_uses.h"
#include "interpose/cuda/pageable_copy.h"
#include "interpose/cuda/program_contexts.h"
#include "runtime/fault/request_board.h"

namespace hpe::cuda_hooks {

/// Memory that one piece of device work uses.
struct used_range {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  bool written = false;
};

/// Any thread, except where told.
class adopted_memory {
 public:
  /// Device work from before its call of the driver to after it. The driver is called without a lock, because two calls
  /// may wait for each other. Views of what the work writes do not open meanwhile: the devices have it not in their
  /// queues yet, so a wait for them would not cover it.
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

    adopted_region::bytes written_{0, 0};  // all that it writes lies in there
    work_in_flight* next_ = nullptr;
    work_in_flight* previous_ = nullptr;
  };

  adopted_memory(const device::cuda::driver& cu, contexts& parts, program_contexts& program, pageable_copy& copies,
                 incoherent_uses& uses)
      : cu_(cu), parts_(parts), program_(program), copies_(copies), uses_(uses) {}

  /// Whether the host has touched any. The one thing that programs which never do pay for.
  static bool any() noexcept { return touched_regions.load(std::memory_order_relaxed) != 0; }

  /// The host touches an address: brings the data and opens the view. not_ours: this is no device memory, or its data
  /// cannot be had, which the log tells. From one thread, which is not the program's, as the next one.
  fault::verdict touch(CUdeviceptr address, bool write) noexcept;
  /// Fetches a piece of what walking hosts will touch next. False if there is nothing to fetch.
  bool fetch_ahead() noexcept;

  /// For code of the host that does not touch the memory itself (system calls, MPI), on memory that the host has
  /// touched: copies bytes as they are after all work queued so far, or puts bytes in place so that device work queued
  /// from now on and the host see them. The range lies in one allocation. Throws hpe::error.
  void read(void* to, CUdeviceptr from, std::size_t bytes);
  void write(CUdeviceptr to, const void* from, std::size_t bytes);
  /// How many bytes from an address on belong to its allocation, 0 if it is no device memory. Asks the driver.
  [[nodiscard]] std::size_t bytes_from(CUdeviceptr address) const;

  /// Near which addresses the host has touched memory.
  [[nodiscard]] const granule_marks& marks() const noexcept { return marks_; }

  /// Device work that may use any memory, or only these ranges, is queued between the two. Tells what failed, and then
  /// the work must not be queued, nor ended; nothing of the host's data is lost.
  CUresult begin_work(work_in_flight& work) noexcept;
  CUresult begin_work(work_in_flight& work, std::span<const used_range> ranges) noexcept;
  /// The same for work that may use all of each region in which one of these addresses lies.
  CUresult begin_work(work_in_flight& work, std::span<const CUdeviceptr> addresses) noexcept;
  void end_work(work_in_flight& work) noexcept;

  /// Whether the host has touched any of a range, or of what shares pages with it.
  [[nodiscard]] bool has_touched(CUdeviceptr begin, CUdeviceptr end);
  /// The touched region in which an address lies; empty if there is none.
  [[nodiscard]] adopted_region::bytes touched(CUdeviceptr address);

  /// The program gives memory back: [address, address + bytes).
  void drop(CUdeviceptr address, std::size_t bytes) noexcept;
  /// Contexts may end, and memory with them.
  void drop_all() noexcept;

 private:
  using region_pointer = std::shared_ptr<adopted_region>;
  using regions = std::map<CUdeviceptr, region_pointer>;  // by end
  using unique_lock = std::unique_lock<std::mutex>;

  region_pointer find(CUdeviceptr address);
  region_pointer adopt(CUdeviceptr address);
  region_pointer find_or_adopt(CUdeviceptr address);
  region_pointer require(CUdeviceptr address);
  regions::iterator remove(regions::iterator r);

  void fetch(unique_lock& lock, const region_pointer& r, coherence::block_run run);
  void open_fetched(adopted_region& r, coherence::block_run run, coherence::block_run markers, bool write);
  void open(adopted_region& r, coherence::block_run run, coherence::block_event event);
  void release(adopted_region& r, coherence::block_event event, CUdeviceptr begin, CUdeviceptr end);
  void move(adopted_region& r, adopted_region::bytes range, bool to_device);
  void copy(adopted_region& r, CUdeviceptr device, void* host, std::size_t bytes, bool to_device);
  void wait_for_work(unique_lock& lock, const adopted_region& r);
  void explain(CUdeviceptr address) const;
  template <class Release>
  CUresult begin_work_after(work_in_flight& work, Release release_used) noexcept;
  /// Whether work that writes some of the bytes is being queued, or work that nobody has seen may be.
  [[nodiscard]] bool being_queued(adopted_region::bytes range) const noexcept;
  /// Waits until it is not so.
  void wait_until_queued(unique_lock& lock, adopted_region::bytes range);

  inline static constinit std::atomic<std::uint32_t> touched_regions{0};

  const device::cuda::driver& cu_;
  contexts& parts_;
  program_contexts& program_;
  pageable_copy& copies_;
  incoherent_uses& uses_;

  std::mutex fetching_;  // held while anything is fetched; before mutex_
  std::mutex mutex_;     // of all that follows
  std::condition_variable moved_;
  std::condition_variable queued_;   // some work is not in flight any more
  work_in_flight* first_ = nullptr;  // of those in flight
  bool unseen_ = false;              // work may be in flight that began when nothing was touched
  regions regions_;
  granule_marks marks_;
  struct wish {
    std::weak_ptr<adopted_region> region;
    coherence::block_run run;
  };
  std::deque<wish> ahead_;
  std::deque<adopted_region::bytes> ended_;  // what the end of a context took
  std::uint64_t work_ = 0;                   // pieces of device work that have been queued
  std::uint64_t waited_ = 0;                 // of which these are done; both count while any() holds
};

}  // namespace hpe::cuda_hooks
