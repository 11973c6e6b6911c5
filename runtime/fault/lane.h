#pragma once

/// A lane is a worker thread that serves page faults: it receives the requests of faulting threads, applies the
/// protocol, starts copies, and opens views when the data has arrived. One lane serves all blocks of a region (the lane
/// whose number is the region's number modulo the number of lanes), so the lane's bookkeeping needs no lock. A lane
/// never blocks on device work: it keeps requests that must wait, and checks them again when its gate (device::gate)
/// rings.

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/coherence/announcements.h"
#include "runtime/coherence/region_table.h"
#include "runtime/fault/request_board.h"
#include "runtime/memory/granule_table.h"
#include "runtime/work/block_copies.h"
#include "runtime/work/host_spill.h"

namespace hpe::fault {

/// The objects that lanes work on. Owned by the runtime; must outlive the lanes.
struct lane_environment : work::resources {
  const memory::granule_table& granules;
  coherence::region_table& regions;
  coherence::announcements& announced;
  counters& count;
  std::function<void(unsigned lane)> settle = [](unsigned) {};  ///< called first in the thread of each lane
  /// If the lane lacks host memory for its own work, it retries for this time, and then refuses the waiting requests.
  std::chrono::milliseconds patience = std::chrono::seconds(10);
};

class lane {
 public:
  /// Creates lane `number` of `lanes` lanes. start() starts the lane's thread.
  lane(unsigned number, unsigned lanes, const lane_environment& environment, std::unique_ptr<device::gate> gate);
  ~lane();
  lane(const lane&) = delete;
  lane& operator=(const lane&) = delete;

  [[nodiscard]] device::gate& gate() noexcept { return *gate_; }

  /// Starts the thread, which serves the requests for this lane on the board.
  void start(request_board& board);

  /// Asks the lane to fetch a range of a region before the host touches these bytes. Thread-safe; returns at once.
  void prefetch(std::uint32_t region, coherence::byte_range range);

 private:
  /// A copy home -> shadow of neighbouring blocks with one home.
  struct fetch {
    coherence::region* region;
    coherence::block_run run;
    std::uint32_t number;  // number of this fetch, which block_states stores for each block of the run
    device::priority level;
    coherence::point_set after;     // points to wait for before the fetch is issued
    std::vector<timepoint> copies;  // timepoints of the fetch's copies; empty until the fetch is issued
    std::span<std::byte> apart{};   // the bytes whose mapping is set apart during the copies
  };
  struct prefetch_wish {
    std::uint32_t region;
    coherence::byte_range range;
  };
  /// Returns the points for which a fetch waits now.
  [[nodiscard]] static std::span<const timepoint> next_of(const fetch& f) noexcept {
    return f.after.empty() ? std::span<const timepoint>(f.copies) : f.after.points();
  }
  enum class outcome { answered, waiting };

  [[nodiscard]] bool serves(std::uint32_t region) const noexcept { return region % lanes_ == number_; }
  void run();
  void serve_prefetches();
  /// Whether host memory has been short in every turn of run() for at least the time lane_environment::patience.
  [[nodiscard]] bool is_out_of_patience();
  void refuse_waiting() noexcept;
  /// Adds to watched_ the points for which fetches wait. Returns false if a fetch can continue at once.
  bool watch_fetches() noexcept;
  /// Serves a request. If host memory is short, the request keeps waiting, and the lane tries again in the next turn of
  /// run().
  outcome serve(request& r) noexcept;
  outcome try_to_serve(request& r);
  outcome serve_locked(request& r, coherence::region& region, std::uint64_t block) HPE_REQUIRES(region.mutex);

  /// Whether the data of each neighbour of a block is only at home. A block without neighbours is alone.
  [[nodiscard]] static bool is_alone(const coherence::region& r, std::uint64_t block) HPE_REQUIRES(r.mutex);
  /// Makes the blocks of a region smaller, because the host's reads are scattered. If host memory is short, the blocks
  /// keep their size.
  void refine(coherence::region& r) noexcept HPE_REQUIRES(r.mutex);
  void open_for_reading(coherence::region& r, std::uint64_t block) HPE_REQUIRES(r.mutex);
  /// Opens the block, and its neighbours in state host, only for reading, because their bytes are also in the spill
  /// file.
  void open_saved(coherence::region& r, std::uint64_t block) HPE_REQUIRES(r.mutex);
  /// Opens the block, and further blocks ahead of the writer. Returns the blocks to upload, with which the writer has
  /// finished.
  [[nodiscard]] std::deque<coherence::block_run> open_for_writing(coherence::region& r, std::uint64_t block,
                                                                  coherence::block_event event) HPE_REQUIRES(r.mutex);
  void upload_behind(coherence::region& r, const std::deque<coherence::block_run>& runs) HPE_REQUIRES(r.mutex);
  void upload_behind(coherence::region& r, coherence::block_run run) HPE_REQUIRES(r.mutex);
  void start_fetches(coherence::region& r, coherence::block_run run, device::priority level) HPE_REQUIRES(r.mutex);
  /// Fetches blocks before a thread touches them. If the attempt fails, the blocks are fetched when a thread touches
  /// them.
  void fetch_ahead(coherence::region& r, coherence::block_run run) HPE_REQUIRES(r.mutex);
  /// Tells the engine which copies are likely to follow the run of blocks that the host has reached.
  void expect_copies(const coherence::region& r, coherence::block_run run) HPE_REQUIRES(r.mutex);
  /// Advances a fetch. Returns true when the fetch is over. If memory is short, the lane tries again soon.
  bool advance(fetch& f) noexcept;
  bool try_to_advance(fetch& f);
  void issue(fetch& f) HPE_REQUIRES(f.region->mutex);
  void complete(const fetch& f) HPE_REQUIRES(f.region->mutex);
  /// Answers those requests that wait for blocks of the run and whose views are now open.
  void answer_those_in(coherence::region& r, coherence::block_run run) HPE_REQUIRES(r.mutex);
  /// Takes the fetch's blocks out of state fetching. Requests for these blocks, waiting or new, then start another
  /// fetch.
  static void fail(const fetch& f) HPE_REQUIRES(f.region->mutex);
  /// Like fail, but also refuses the requests that wait for these blocks.
  void give_up(const fetch& f, const char* why) HPE_REQUIRES(f.region->mutex);
  [[nodiscard]] static bool owns(const fetch& f, std::uint64_t block) HPE_REQUIRES(f.region->mutex);
  [[nodiscard]] bool reached(std::span<const timepoint> points) const { return work::reached(points, env_.devices); }
  /// Whether announced work forbids opening views of these blocks. With `watch`, the gates of the lanes ring when that
  /// work ends.
  [[nodiscard]] bool kept_closed(coherence::region& r, coherence::block_run run, bool write, bool watch = false) const
      HPE_REQUIRES(r.mutex);
  [[nodiscard]] bool wanted_for_writing(const coherence::region& r, std::uint64_t block) const HPE_REQUIRES(r.mutex);
  /// Whether the shadow of the block is in memory (work::host_spill). If the shadow is not in memory, asks a thread to
  /// bring it there.
  [[nodiscard]] bool is_in_memory(coherence::region& r, std::uint64_t block, bool write) HPE_REQUIRES(r.mutex);
  [[nodiscard]] bool may_overwrite_shadow(const coherence::region& r, std::uint64_t block) const HPE_REQUIRES(r.mutex);

  const unsigned number_;
  const unsigned lanes_;
  const lane_environment env_;
  std::unique_ptr<device::gate> gate_;
  request_board* board_ = nullptr;

  std::vector<request*> waiting_;
  std::deque<fetch> fetches_;
  std::vector<timepoint> watched_;  // points for which requests and fetches wait
  bool short_of_memory_ = false;    // some work of this turn failed for lack of memory, and will be tried again
  std::optional<std::chrono::steady_clock::time_point> short_since_;  // since then, memory was short in every turn
  std::uint32_t last_fetch_ = 0;

  mutex inbox_mutex_;
  std::vector<prefetch_wish> inbox_ HPE_GUARDED_BY(inbox_mutex_);
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// Whether the calling thread is a lane. A fault in a lane is a bug, because a lane must not wait for itself. Safe in a
/// signal handler.
[[nodiscard]] bool in_lane_thread() noexcept;

}  // namespace hpe::fault
