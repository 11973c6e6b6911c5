#pragma once

#include <functional>
#include <vector>

#include "runtime/work/block_copies.h"
#include "runtime/work/residency.h"

namespace hpe::work {

/// Device work on regions as a transaction: the release of the consistency model. Launches, fills and copies of all
/// kinds use regions only through this class.
///
/// The constructor locks the regions of the accesses, closes the views of bytes that the work will write, and queues
/// the uploads of bytes that the host wrote. The work is then submitted, whole or in pieces, each piece behind the work
/// that its bytes depend on. A block changes its state when the piece that uses it has been queued. So after any
/// failure, each block is in the state that follows from what was queued:
///
///   - Queued work is in the regions' order: the next user of its bytes waits for it.
///   - A block whose piece was not queued has its old state, though its view may be closed and its upload may have been
///     queued. The next access opens the view.
///
/// The destructor unlocks the regions. Waits for device work only if the host's or a device's memory is short. Used by
/// one thread.
///
///   submission work(with, {{&r, range, HPE_OUT}});
///   work.submit_by_home([&](unsigned home, byte_range part, const point_set& after) { return ...; });
class submission {
 public:
  /// Called for each access when its region is locked, before views are closed.
  using preparation = std::function<void(const device_access&)>;

  /// Whether the data must be in device memory: yes for work that is queued now; announced work is queued later.
  enum class memory : std::uint8_t { needed, as_it_is };

  /// Waits for room in device memory where that is too small for all data (residency). Throws HPE_ERROR_NOT_A_REGION if
  /// a region was freed meanwhile, HPE_ERROR_OUT_OF_MEMORY, and the errors of `prepare` and of uploads.
  submission(const resources& with, std::vector<device_access> accesses, const preparation& prepare = {},
             memory what = memory::needed);
  ~submission();
  submission(const submission&) = delete;
  submission& operator=(const submission&) = delete;

  /// Queues the whole work as one command: queue(after) returns its timepoint, and has queued nothing if it throws. It
  /// may add points to `after` for which the work must wait as well.
  template <class Queue>
  timepoint submit(const Queue& queue) {
    coherence::point_set after;
    collect(accesses_, with_.devices, after);
    const timepoint point = queue(after);
    queued(accesses_, std::span(&point, 1));
    return point;
  }

  /// Queues the whole work as commands of several devices that do it together: queue(after, points) adds their
  /// timepoints. If it throws, the work counts as queued if at least one of the commands was.
  template <class Queue>
  void submit_together(const Queue& queue) {
    coherence::point_set after;
    collect(accesses_, with_.devices, after);
    std::vector<timepoint> points;
    try {
      queue(static_cast<const coherence::point_set&>(after), points);
    } catch (...) {
      if (!points.empty()) queued(accesses_, points);
      throw;
    }
    queued(accesses_, points);
  }

  /// Queues a piece of the work with the piece's accesses. No piece of an HPE_OUT access may end inside a block that
  /// the whole access overwrites; coherence::region::end_of_piece says where a piece may end.
  template <class Queue>
  timepoint submit_piece(std::span<const device_access> piece, const Queue& queue) {
    coherence::point_set after;
    collect(piece, with_.devices, after);
    const timepoint point = queue(static_cast<const coherence::point_set&>(after));
    queued(piece, std::span(&point, 1));
    return point;
  }

  /// Queues work with one access home by home, in pieces of at most `most` bytes: queue(home, part, after).
  template <class Queue>
  void submit_by_home(const Queue& queue, std::uint64_t most = ~std::uint64_t{0}) {
    const device_access all = accesses_.front();
    for (device_access piece = all; piece.range.begin < all.range.end; piece.range.begin = piece.range.end) {
      piece.range.end = all.region->end_of_piece(piece.range.begin, all.range.end, most);
      submit_piece(std::span(&piece, 1), [&](const coherence::point_set& after) {
        return queue(all.region->home_of(piece.range.begin), piece.range, after);
      });
    }
  }

  /// All uploads that the constructor queued, because each can fail.
  [[nodiscard]] std::span<const timepoint> uploads() const noexcept { return uploads_; }

  /// Completes the release for work that is not queued here: announced work, and work of other processes.
  void hand_over() noexcept { queued(accesses_, {}); }

  /// Handles a failure of queuing after which parts of the work may have run, and none runs any more: the host's copy
  /// of bytes that it may have written is valid if there is one; else the home stays as the parts left it.
  void abandon() noexcept;

 private:
  /// Blocks whose state changes when the work on them has been queued.
  struct pending_change {
    coherence::region* region;
    coherence::block_run run;
    coherence::block_event event;
  };

  // The analysis cannot follow locks in a container.
  void lock_regions() HPE_NO_THREAD_SAFETY_ANALYSIS;
  void unlock_regions() noexcept HPE_NO_THREAD_SAFETY_ANALYSIS;
  void lock_and_prepare(const preparation& prepare);
  /// Replaces accesses by their parts that are in device memory, and closes the views of the others, which stay the
  /// host's.
  void keep_resident_parts();
  void release(const device_access& access);
  void release_run(coherence::region& r, coherence::block_run run, coherence::block_event event) HPE_REQUIRES(r.mutex);
  void queued(std::span<const device_access> piece, std::span<const timepoint> points) noexcept;

  const resources with_;
  std::vector<device_access> accesses_;      // by region, pure writes last
  std::vector<coherence::region*> regions_;  // locked, by number
  std::vector<pending_change> pending_;
  std::vector<timepoint> uploads_;
};

}  // namespace hpe::work
