#pragma once

/// The host's copies of regions where host memory has a limit (HPE_HOST_MEMORY): which granules of the shadow are in
/// memory, and which in a file (HPE_SPILL). Without the limit, all of them are in memory and nothing here does
/// anything.
///
/// Code that is about to use the shadow of some bytes calls hold() under the region's mutex. If hold() returns false,
/// bring() waits until the bytes are in memory, without the mutex; a lane, which must not wait, calls ask_for()
/// instead. Memory that is held stays while the mutex is held, while queued copies in the region's order use it, and
/// while a shadow_lease lasts. Otherwise it may go: granules whose blocks all have a valid copy on a device, or in the
/// file, at once; other granules are written to the file first. One thread does both, ahead of the need. Another thread
/// reads for lanes.
///
/// For the protocol nothing changes: a block in the file is in state host or shared, with a closed view. A block in
/// state shared that is given up without the file is like one that a device has written.
///
/// Several granules are read, or written, at a time, because that is how disks are fast.
///
/// Progress. Threads get memory in the order in which they asked for it. Each needs a small part of the limit at once
/// (a granule, or a piece that a device gives up), and memory that was used last goes last. A thread of the program
/// that touches memory gets it even where nothing can make room (the disk is full): beyond the limit, with a warning.

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
#include "runtime/work/host_view.h"

namespace hpe::work {

/// Thread-safe.
class host_memory {
 public:
  /// limit: in bytes; 0: none, and the folder is not used. Throws HPE_ERROR_INITIALIZATION if there is no such folder.
  host_memory(std::uint64_t limit, const std::string& folder, device::device_set& devices, const memory::uvas& space,
              host_view& views, coherence::region_table& regions, counters& count);
  ~host_memory();
  host_memory(const host_memory&) = delete;
  host_memory& operator=(const host_memory&) = delete;

  /// The smallest limit.
  static constexpr std::uint64_t least = std::uint64_t{16} << 20;

  /// Starts to serve ask_for(). arrived: called in another thread when memory has come, or cannot come.
  void serve(std::function<void()> arrived);
  /// Stops serving ask_for(); arrived is not called any more.
  void stop() noexcept;

  [[nodiscard]] bool limited() const noexcept { return limit_ != 0; }
  /// The most bytes that one piece of work should hold, so that other work finds memory as well.
  [[nodiscard]] std::uint64_t most_at_once() const noexcept { return limited() ? limit_ / 8 : ~std::uint64_t{0}; }
  /// The bytes that memory and the file can take together; 0 without a limit.
  [[nodiscard]] std::uint64_t capacity() const noexcept { return limited() ? limit_ + file_->room() : 0; }

  /// Makes a new region subject to the limit.
  void track(coherence::region& r) HPE_REQUIRES(r.mutex);
  /// Forgets a region that has ended, after a wait for transfers of its bytes. The caller gives the pages back.
  void forget(coherence::region& r) noexcept;

  /// Takes memory that stays in use and is never in the file, for host memory (hpeMallocHost): at most three quarters
  /// of the limit, so that launches and copies always find some. Throws HPE_ERROR_OUT_OF_MEMORY.
  void take(std::uint64_t bytes);
  void give_back(std::uint64_t bytes) noexcept;

  enum class use : std::uint8_t { read, write };
  /// Whether the shadow of the bytes is in memory; gives memory to granules that have no bytes on the host. Notes the
  /// use. `write`: the pages, not the file, have the valid bytes then.
  [[nodiscard]] bool hold(coherence::region& r, coherence::byte_range bytes, use how) HPE_REQUIRES(r.mutex);
  /// Whether the shadow of the bytes is in memory. Changes nothing.
  [[nodiscard]] static bool in_memory(const coherence::region& r, coherence::byte_range bytes) HPE_REQUIRES(r.mutex);
  /// Whether the file has, or will soon have, the bytes of the block's granule as well, so that views should be opened
  /// for reading only.
  [[nodiscard]] static bool saved(const coherence::region& r, std::uint64_t block) HPE_REQUIRES(r.mutex);

  /// Brings granules of the bytes to memory in which a block is in a state for which `is` holds (all without `is`).
  /// Waits for room. The caller holds no mutex of a region. Throws HPE_ERROR_OUT_OF_MEMORY with the sizes, and
  /// HPE_ERROR_SYSTEM if the file cannot be read.
  using state_test = bool (*)(coherence::block_state) noexcept;
  void bring(const region_range& bytes, state_test is = nullptr) { bring(bytes, is, false); }
  /// Asks another thread to bring the bytes; throws the error of an earlier attempt that failed.
  void ask_for(coherence::region& r, coherence::byte_range bytes) HPE_REQUIRES(r.mutex);
  /// Brings the whole region in the calling thread, beyond the limit if need be. For the rare operations on whole
  /// regions.
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
  /// The result of an attempt to make room. All other bytes of taken_ can be given up later: device work or a thread
  /// uses them, or they are on their way from or to the file.
  struct room_made {
    std::uint64_t freed = 0;
    std::uint64_t stuck = 0;  // bytes that cannot be given up
    std::string why;          // the reason why they cannot
  };

  /// The search for memory that can be given up.
  enum class search : std::uint8_t {
    wanted,    ///< something has changed since the latest one
    running,   ///< and nothing has changed since it began
    all_stuck  ///< it has found that no memory can be given up, and nothing has changed since
  };

  /// How many granules are read at a time for one caller, and how many are written: few beside the limit.
  [[nodiscard]] unsigned transfers_at_once() const noexcept;
  static coherence::byte_range bytes_of(const coherence::region& r, std::uint64_t granule) noexcept;
  std::uint64_t now() noexcept { return clock_.fetch_add(1, std::memory_order_relaxed) + 1; }

  // host_memory.cpp
  void bring(const region_range& bytes, state_test is, bool beyond);
  void bring_granule(coherence::region& r, std::uint64_t granule, state_test is, bool beyond);
  /// The runs of blocks whose bytes the file has, or must get.
  [[nodiscard]] static std::vector<coherence::byte_range> valid_parts(const coherence::region& r, std::uint64_t granule,
                                                                      state_test is) HPE_REQUIRES(r.mutex);
  void read(const coherence::region& r, std::uint64_t granule, std::uint32_t extent,
            const std::vector<coherence::byte_range>& parts);
  void begin_transfer(coherence::region& r, coherence::host_granule& g) HPE_REQUIRES(r.mutex);
  void end_transfer(const coherence::region& r) noexcept;
  void wait_for_transfers(const coherence::region& r) noexcept;
  void reserve(std::uint64_t bytes, bool beyond);
  [[nodiscard]] bool try_reserve(std::uint64_t bytes);
  void release(std::uint64_t bytes) noexcept;

  // spilling.cpp
  void make_room_ahead();
  void read_for_lanes();
  void fulfil(const wish& what);
  void bring_ahead(const wish& what);
  [[nodiscard]] std::uint64_t shortage() const HPE_REQUIRES(mutex_);
  [[nodiscard]] room_made make_room(std::uint64_t bytes);
  /// Granules in memory that may go, in this order. Adds the bytes of the others that cannot go to `stuck`.
  [[nodiscard]] std::vector<victim> victims(std::uint64_t& stuck) const;
  [[nodiscard]] static bool may_go(const coherence::region& r) HPE_REQUIRES(r.mutex);
  /// Whether no thread and no queued copy uses the granule's pages.
  [[nodiscard]] bool unused(const coherence::region& r, std::uint64_t granule) const HPE_REQUIRES(r.mutex);
  [[nodiscard]] static bool needs_write(const coherence::region& r, std::uint64_t granule) HPE_REQUIRES(r.mutex);
  room_made give_up(const victim& v);
  void write(coherence::region& r, std::uint64_t granule, std::uint32_t extent,
             const std::vector<coherence::byte_range>& parts);
  /// Gives the granule's pages back to the system. Returns their bytes.
  std::uint64_t drop(coherence::region& r, std::uint64_t granule) HPE_REQUIRES(r.mutex);

  const std::uint64_t limit_;
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
  std::uint64_t taken_ HPE_GUARDED_BY(mutex_) = 0;   // bytes in memory, or about to be
  std::uint64_t kept_ HPE_GUARDED_BY(mutex_) = 0;    // of these, host memory, which stays (take)
  std::uint64_t wanted_ HPE_GUARDED_BY(mutex_) = 0;  // bytes that threads wait for
  // Threads that wait for memory, by number: those before served_ wait no more, and served_ is the first that does.
  std::uint64_t asked_ HPE_GUARDED_BY(mutex_) = 0;
  std::uint64_t served_ HPE_GUARDED_BY(mutex_) = 0;
  search search_ HPE_GUARDED_BY(mutex_) = search::wanted;
  std::string why_all_stuck_ HPE_GUARDED_BY(mutex_);
  bool warned_ HPE_GUARDED_BY(mutex_) = false;
  std::vector<wish> wishes_ HPE_GUARDED_BY(mutex_);
  std::map<std::uint32_t, unsigned> transfers_ HPE_GUARDED_BY(mutex_);  // under way, by region
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::string> failures_ HPE_GUARDED_BY(mutex_);
  condition_variable changed_;   // taken_, served_, search_ or transfers_
  condition_variable for_room_;  // work for the thread that makes room
  condition_variable for_wishes_;
  std::thread makes_room_;
  std::thread reads_;
  crew readers_;  // for threads that bring several granules
  crew writers_;  // for makes_room_
};

}  // namespace hpe::work
