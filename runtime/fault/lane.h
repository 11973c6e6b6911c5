#pragma once

/// The worker behind page faults: it takes the wishes of faulting threads, decides by the protocol, starts copies, and
/// opens views when the data is there. One lane serves all blocks of a region (region number modulo lanes), so its
/// book-keeping needs no lock of its own. It never blocks on device work: what must wait is kept and looked at again
/// when its gate rings.

#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/coherence/announcements.h"
#include "runtime/coherence/region_table.h"
#include "runtime/fault/request_board.h"
#include "runtime/memory/granule_table.h"
#include "runtime/work/block_copies.h"

namespace hpe::fault {

/// What lanes work on; owned by the runtime, and living longer than they.
struct lane_environment : work::resources {
  const memory::granule_table& granules;
  coherence::region_table& regions;
  coherence::announcements& announced;
  counters& count;
  std::function<void(unsigned lane)> settle = [](unsigned) {};  ///< what the thread of a lane does first
};

class lane {
 public:
  /// One of so many.
  lane(unsigned number, unsigned lanes, const lane_environment& environment, std::unique_ptr<device::gate> gate);
  ~lane();
  lane(const lane&) = delete;
  lane& operator=(const lane&) = delete;

  [[nodiscard]] device::gate& gate() noexcept { return *gate_; }

  /// Starts the thread. The board has this lane under its number.
  void start(request_board& board);

  /// Asks for a range to be fetched before the host touches it. From any thread; returns at once.
  void prefetch(std::uint32_t region, coherence::byte_range range);

 private:
  /// A copy home -> shadow of neighbouring blocks with one home.
  struct fetch {
    coherence::region* region;
    coherence::block_run run;
    std::uint32_t number;  // what its blocks say while they belong to it
    device::priority level;
    coherence::point_set after;     // held until these are reached
    std::vector<timepoint> copies;  // then under way until these are
  };
  struct prefetch_wish {
    std::uint32_t region;
    coherence::byte_range range;
  };
  /// What a fetch waits for next.
  [[nodiscard]] static std::span<const timepoint> next_of(const fetch& f) noexcept {
    return f.after.empty() ? std::span<const timepoint>(f.copies) : f.after.points();
  }
  enum class outcome { answered, waiting };

  [[nodiscard]] bool serves(std::uint32_t region) const noexcept { return region % lanes_ == number_; }
  void run();
  void serve_prefetches();
  /// Adds what the fetches wait for to the watched points. False if one of them can go on at once.
  bool watch_fetches() noexcept;
  /// Where memory is short, the request waits for the next turn.
  outcome serve(request& r) noexcept;
  outcome try_to_serve(request& r);
  outcome serve_locked(request& r, coherence::region& region, std::uint64_t block) HPE_REQUIRES(region.mutex);

  void open_for_reading(coherence::region& r, std::uint64_t block) HPE_REQUIRES(r.mutex);
  /// Gives the blocks to upload behind the writer, once it goes on.
  [[nodiscard]] std::deque<coherence::block_run> open_for_writing(coherence::region& r, std::uint64_t block,
                                                                  coherence::block_event event) HPE_REQUIRES(r.mutex);
  void upload_behind(coherence::region& r, const std::deque<coherence::block_run>& runs) HPE_REQUIRES(r.mutex);
  void upload_behind(coherence::region& r, coherence::block_run run) HPE_REQUIRES(r.mutex);
  void start_fetches(coherence::region& r, coherence::block_run run, device::priority level) HPE_REQUIRES(r.mutex);
  /// The same before anybody asks: what cannot be fetched is left to who touches it.
  void fetch_ahead(coherence::region& r, coherence::block_run run) HPE_REQUIRES(r.mutex);
  /// Tells the engine what is likely to be copied behind a run that the host has come to.
  void expect_copies(const coherence::region& r, coherence::block_run run) HPE_REQUIRES(r.mutex);
  /// True when the fetch is over. Where memory is short, the lane tries again soon.
  bool advance(fetch& f) noexcept;
  bool try_to_advance(fetch& f);
  void issue(fetch& f) HPE_REQUIRES(f.region->mutex);
  void complete(const fetch& f) HPE_REQUIRES(f.region->mutex);
  /// Lets the threads go on that wait for blocks whose views were just opened.
  void answer_those_in(coherence::region& r, coherence::block_run run) HPE_REQUIRES(r.mutex);
  /// Its blocks are not fetched: whoever touches them asks again.
  static void fail(const fetch& f) HPE_REQUIRES(f.region->mutex);
  /// The same, and the threads that wait for them are refused.
  void give_up(const fetch& f, const char* why) HPE_REQUIRES(f.region->mutex);
  [[nodiscard]] static bool owns(const fetch& f, std::uint64_t block) HPE_REQUIRES(f.region->mutex);
  [[nodiscard]] bool reached(std::span<const timepoint> points) const { return work::reached(points, env_.devices); }
  /// Whether announced work keeps views of these blocks closed. watch: the lane is rung when that may have changed.
  [[nodiscard]] bool kept_closed(coherence::region& r, coherence::block_run run, bool write, bool watch = false) const
      HPE_REQUIRES(r.mutex);
  [[nodiscard]] bool wanted_for_writing(const coherence::region& r, std::uint64_t block) const HPE_REQUIRES(r.mutex);
  [[nodiscard]] coherence::point_set users_of_shadow(const coherence::region& r, std::uint64_t block) const
      HPE_REQUIRES(r.mutex);
  [[nodiscard]] bool may_overwrite_shadow(const coherence::region& r, std::uint64_t block) const HPE_REQUIRES(r.mutex);

  const unsigned number_;
  const unsigned lanes_;
  const lane_environment env_;
  std::unique_ptr<device::gate> gate_;
  request_board* board_ = nullptr;

  std::vector<request*> waiting_;
  std::deque<fetch> fetches_;
  std::vector<timepoint> watched_;  // what the waiting ones wait for
  bool short_of_memory_ = false;    // some of this turn's work could not be done, and is tried again
  std::uint32_t last_fetch_ = 0;

  mutex inbox_mutex_;
  std::vector<prefetch_wish> inbox_ HPE_GUARDED_BY(inbox_mutex_);
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// Whether the calling thread is a lane: a fault there is a defect, and must not wait for itself. Safe in a handler.
[[nodiscard]] bool in_lane_thread() noexcept;

}  // namespace hpe::fault
