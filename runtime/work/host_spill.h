#pragma once

/// The host's copies of regions if host memory has a limit (HPE_HOST_MEMORY): which granules of the shadow are in
/// memory, and which are in a file (HPE_SPILL). Without the limit, all host copies are in memory, and these functions
/// have no effect.
///
/// Code that is about to use the shadow of some bytes calls hold() under the region's mutex. If hold() returns false,
/// the caller releases the mutex and calls bring(), which waits until the bytes are in memory. A lane must not wait; it
/// calls ask_for() instead. Held memory stays in memory while the mutex is held, while queued copies in the region's
/// order use it, and while a shadow_lease exists. At all other times, hpe may give up the memory, that is, free the
/// granule's pages. Granules whose blocks all have a valid copy on a device or in the file are given up at once; other
/// granules are first written to the file. One thread writes granules to the file and gives them up before memory is
/// needed. Another thread reads granules for lanes.
///
/// The protocol does not change: a block in the file is in state host or shared, with a closed view. If a block in
/// state shared is given up and is not in the file, it becomes like a block that a device has written.
///
/// hpe reads or writes several granules at a time, because disks are slow with single granules.
///
/// Progress. Threads get memory in the order in which they asked for it. At any time, each thread needs only a small
/// part of the limit (a granule, or a piece that a device gives up), and hpe gives up the most recently used memory
/// last. If hpe cannot free memory (for example, because the disk is full), a thread of the program that touches memory
/// still gets memory. hpe then exceeds the limit and logs a warning.

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/counters.h"
#include "runtime/coherence/region_table.h"
#include "runtime/memory/uvas.h"
#include "runtime/os/spill_file.h"
#include "runtime/work/accesses.h"
#include "runtime/work/crew.h"
#include "runtime/work/host_budget.h"
#include "runtime/work/host_view.h"

namespace hpe::work {

/// Thread-safe.
class host_spill {
 public:
  /// `limit`: in bytes; 0: no limit, and the folder is not used. Throws HPE_ERROR_SYSTEM if no file can be created in
  /// the folder.
  host_spill(std::uint64_t limit, const std::string& folder, device::device_set& devices, const memory::uvas& space,
             host_view& views, coherence::region_table& regions, counters& count);
  ~host_spill();
  host_spill(const host_spill&) = delete;
  host_spill& operator=(const host_spill&) = delete;

  /// The smallest value of `limit` other than 0, in bytes.
  static constexpr std::uint64_t least = std::uint64_t{16} << 20;

  /// Starts to serve ask_for(). Calls `arrived` in another thread when bytes have been brought into memory, or cannot
  /// be brought.
  void serve(std::function<void()> arrived);
  /// Ends the threads that serve ask_for(). After stop(), `arrived` is not called.
  void stop() noexcept;

  [[nodiscard]] bool limited() const noexcept { return limit_ != 0; }
  /// The largest number of bytes that one piece of work should hold, so that memory is left for other work.
  [[nodiscard]] std::uint64_t most_at_once() const noexcept { return limited() ? limit_ / 8 : ~std::uint64_t{0}; }
  /// The number of bytes that memory and the file can hold together; 0 if there is no limit.
  [[nodiscard]] std::uint64_t capacity() const noexcept { return limited() ? limit_ + file_->room() : 0; }

  /// Makes a new region subject to the limit.
  void track(coherence::region& r) HPE_REQUIRES(r.mutex);
  /// Waits for transfers of the bytes of a region that has ended, and forgets the region. The caller then returns the
  /// region's pages to the system.
  void forget(coherence::region& r) noexcept;

  /// Reserves memory for host memory (hpeMallocHost) and zero-copy memory, which are never in the file; see
  /// host_budget::take.
  void take(std::uint64_t bytes) {
    if (limited()) budget_.take(bytes);
  }
  void give_back(std::uint64_t bytes) noexcept {
    if (limited()) budget_.give_back(bytes);
  }
  /// Returns how many bytes take() could reserve if all data that may be in the file were there.
  [[nodiscard]] std::uint64_t most_to_take() { return limited() ? budget_.most_to_take() : ~std::uint64_t{0}; }

  enum class shadow_use : std::uint8_t { read, write };
  /// Reserves memory for granules that have no bytes on the host, and records the use. Returns whether the shadow of
  /// the bytes is in memory. If `how` is `write`, the copy of these granules in the file becomes invalid.
  [[nodiscard]] bool hold(coherence::region& r, coherence::byte_range bytes, shadow_use how) HPE_REQUIRES(r.mutex);
  /// Whether the shadow of the bytes is in memory. Changes nothing.
  [[nodiscard]] static bool in_memory(const coherence::region& r, coherence::byte_range bytes) HPE_REQUIRES(r.mutex);
  /// Whether the bytes of the block's granule are also in the file, or soon will be. If so, views should be opened for
  /// reading only.
  [[nodiscard]] static bool saved(const coherence::region& r, std::uint64_t block) HPE_REQUIRES(r.mutex);

  /// Brings into memory every granule of the bytes that has a block whose state satisfies `is`; all granules if `is` is
  /// null. Waits until enough memory is free. The caller must not hold the mutex of a region. Throws
  /// HPE_ERROR_OUT_OF_MEMORY, with a message that contains the sizes, and HPE_ERROR_SYSTEM if the file cannot be read.
  using state_test = bool (*)(coherence::block_state) noexcept;
  void bring(const region_range& bytes, state_test is = nullptr) { bring(bytes, is, false); }
  /// Asks another thread to bring the bytes into memory. If an earlier attempt failed, throws HPE_ERROR_SYSTEM with the
  /// message of that attempt.
  void ask_for(coherence::region& r, coherence::byte_range bytes) HPE_REQUIRES(r.mutex);
  /// Brings the whole region into memory in the calling thread, and exceeds the limit if necessary. Only the rare
  /// operations on whole regions may call this.
  void bring_all(coherence::region& r) HPE_REQUIRES(r.mutex);

 private:
  struct victim {
    coherence::region* region;
    std::uint64_t granule;
    std::uint64_t age;
  };
  struct wish {
    std::uint32_t region;
    std::uint64_t granule;
  };
  /// Returns how many granules are read at a time for one caller, and also how many are written at a time: a small part
  /// of the limit.
  [[nodiscard]] unsigned transfers_at_once() const noexcept;
  static coherence::byte_range bytes_of(const coherence::region& r, std::uint64_t granule) noexcept;
  std::uint64_t now() noexcept { return clock_.fetch_add(1, std::memory_order_relaxed) + 1; }

  void bring(const region_range& bytes, state_test is, bool beyond);
  void bring_granule(coherence::region& r, std::uint64_t granule, state_test is, bool beyond);
  /// Returns the byte ranges of those blocks of the granule whose state satisfies `is`. These bytes are in the file, or
  /// must be written to it.
  [[nodiscard]] static std::vector<coherence::byte_range> valid_parts(const coherence::region& r, std::uint64_t granule,
                                                                      state_test is) HPE_REQUIRES(r.mutex);
  void read(const coherence::region& r, std::uint64_t granule, std::uint32_t extent,
            const std::vector<coherence::byte_range>& parts);
  void begin_transfer(coherence::region& r, coherence::host_granule& g) HPE_REQUIRES(r.mutex);
  void end_transfer(const coherence::region& r) noexcept;
  void wait_for_transfers(const coherence::region& r) noexcept;

  void read_for_lanes();
  void fulfil(const wish& what);
  void bring_ahead(const wish& what);
  [[nodiscard]] host_budget::room_made make_room(std::uint64_t bytes);
  /// Returns the granules whose memory may be freed, in the order in which to free them. Adds the bytes of all other
  /// granules in memory, which cannot be freed, to `stuck`.
  [[nodiscard]] std::vector<victim> victims(std::uint64_t& stuck) const;
  [[nodiscard]] static bool may_go(const coherence::region& r) HPE_REQUIRES(r.mutex);
  /// Whether no thread and no queued copy uses the granule's pages.
  [[nodiscard]] bool unused(const coherence::region& r, std::uint64_t granule) const HPE_REQUIRES(r.mutex);
  [[nodiscard]] static bool needs_write(const coherence::region& r, std::uint64_t granule) HPE_REQUIRES(r.mutex);
  host_budget::room_made give_up(const victim& v);
  void write(coherence::region& r, std::uint64_t granule, std::uint32_t extent,
             const std::vector<coherence::byte_range>& parts);
  /// Frees the granule's pages, and returns their size in bytes.
  std::uint64_t drop(coherence::region& r, std::uint64_t granule) HPE_REQUIRES(r.mutex);

  const std::uint64_t limit_;
  host_budget budget_;
  device::device_set& devices_;
  const memory::uvas& space_;
  host_view& views_;
  coherence::region_table& regions_;
  counters& count_;
  std::unique_ptr<os::spill_file> file_;
  std::function<void()> arrived_;
  std::atomic<std::uint64_t> clock_{0};

  mutable mutex mutex_;  // taken after mutexes of regions
  bool stop_ HPE_GUARDED_BY(mutex_) = false;
  std::vector<wish> wishes_ HPE_GUARDED_BY(mutex_);
  std::map<std::uint32_t, unsigned> transfers_ HPE_GUARDED_BY(mutex_);  // running transfers, by region
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::string> failures_ HPE_GUARDED_BY(mutex_);
  condition_variable changed_;  // signals changes of transfers_
  condition_variable for_wishes_;
  std::thread makes_room_;
  std::thread reads_;
  crew readers_;  // helpers of threads that bring several granules
  crew writers_;  // helpers of makes_room_
};

}  // namespace hpe::work
