#pragma once

#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/work/block_copies.h"
#include "runtime/work/residency.h"

namespace hpe::work {

/// Device work on regions as a transaction, which is the release of the consistency model. Launches, fills and copies
/// of all kinds use regions only through this class.
///
/// The constructor locks the regions of the accesses, closes the views of bytes that the work will write, and queues
/// the uploads of bytes that the host wrote. The work is then submitted, whole or in parts. Each part is queued so that
/// it runs after the work on which its bytes depend. A block changes its state when the part that uses it has been
/// queued. Therefore, after any failure, the state of each block corresponds to the work that was queued:
///
///   - Queued work is in the regions' order: the next user of its bytes waits for it.
///   - A block whose part was not queued keeps its old state, or is in state shared if its upload was queued. Its view
///     may be closed; the next access opens the view.
///
/// The destructor unlocks the regions. A submission waits for device work only if the host's or a device's memory is
/// short. Only one thread may use an object.
///
///   submission work(with, {{&r, range, HPE_OUT}});
///   work.submit_by_home([&](unsigned home, byte_range part, const point_set& after) { return ...; });
class submission {
 public:
  /// Called for each access when its region is locked, before views are closed.
  using preparation = std::function<void(const device_access&)>;

  /// Whether the data must be in device memory.
  enum class memory : std::uint8_t {
    needed,         ///< for work that is queued now
    zero_copy_too,  ///< for work that is queued now: data that does not fit may be in zero-copy memory (residency)
    as_it_is        ///< for announced work
  };

  /// is_new: false if an earlier object, which has queued nothing, was for the same piece of work.
  /// If device memory is too small for all data, waits until enough of it is free (residency). Throws
  /// HPE_ERROR_NOT_A_REGION if a region has been freed, HPE_ERROR_OUT_OF_MEMORY, and the errors of `prepare` and of
  /// uploads.
  submission(const resources& with, std::vector<device_access> accesses, const preparation& prepare = {},
             memory what = memory::needed, bool is_new = true);
  enum settled_t : std::uint8_t { settled };
  /// For concurrent work with the same accesses as earlier work, which has left all their regions settled. `accesses`
  /// is the result of take_accesses() for the earlier work. The constructor only locks the regions. The caller must not
  /// submit the work if coherence::work_anywhere::epoch() has changed since the earlier work was queued.
  submission(const resources& with, std::vector<device_access> accesses, settled_t);
  submission(const submission&) = delete;
  submission& operator=(const submission&) = delete;

  /// Queues the whole work as one command: queue(after) returns its timepoint. If `queue` throws, it must have queued
  /// nothing. `queue` may add further points for which the work must wait to `after`.
  template <class Queue>
  timepoint submit(const Queue& queue) {
    coherence::point_set after;
    collect(accesses_, with_.devices, after);
    const timepoint point = queue(after);
    queued(accesses_, std::span(&point, 1));
    return point;
  }

  /// Like submit, for work that may use all memory of some homes, and that names only a part of it:
  /// coherence::work_anywhere::use. Returns nullopt, and has queued nothing, if other regions may no longer be settled.
  template <class Queue>
  std::optional<timepoint> submit_anywhere(coherence::work_anywhere& all, std::uint64_t homes, std::uint64_t epoch,
                                           const Queue& queue) {
    coherence::point_set after;
    collect(accesses_, with_.devices, after);
    const std::optional<timepoint> point = all.use(homes, epoch, after, [&] { return queue(after); });
    if (point) queued(accesses_, std::span(&*point, 1));
    return point;
  }
  /// Whether all regions of the accesses are settled (coherence::region::is_settled).
  [[nodiscard]] bool leaves_all_settled(bool no_zero_copy) const;
  [[nodiscard]] std::span<const device_access> accesses() const noexcept { return accesses_; }
  /// Returns the accesses. The object must not be used any more.
  [[nodiscard]] std::vector<device_access> take_accesses() noexcept { return std::move(accesses_); }

  /// Queues the whole work as commands of several devices that do it together: queue(after, points) queues the commands
  /// and adds their timepoints to `points`. If `queue` throws, the work counts as queued if at least one command was
  /// queued.
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

  /// Queues a part of the work with the part's accesses. No part of an HPE_OUT access may end inside a block that the
  /// whole access overwrites; coherence::region::end_of_part returns where a part may end.
  template <class Queue>
  timepoint submit_part(std::span<const device_access> part, const Queue& queue) {
    coherence::point_set after;
    collect(part, with_.devices, after);
    const timepoint point = queue(static_cast<const coherence::point_set&>(after));
    queued(part, std::span(&point, 1));
    return point;
  }

  /// Queues work with one access, home by home, in parts of at most `most` bytes; queue(home, part, after) queues a
  /// part.
  template <class Queue>
  void submit_by_home(const Queue& queue, std::uint64_t most = ~std::uint64_t{0}) {
    const device_access all = accesses_.front();
    for (device_access part = all; part.range.begin < all.range.end; part.range.begin = part.range.end) {
      part.range.end = all.region->end_of_part(part.range.begin, all.range.end, most);
      submit_part(std::span(&part, 1), [&](const coherence::point_set& after) {
        return queue(all.region->home_of(part.range.begin), part.range, after);
      });
    }
  }

  /// Returns the points of all uploads that the constructor queued, because each upload can fail.
  [[nodiscard]] std::span<const timepoint> uploads() const noexcept { return uploads_; }

  /// Completes the release for work that is not queued here: announced work, and work of other processes.
  void hand_over() noexcept { queued(accesses_, {}); }

  /// Call this if queuing has failed. Parts of the work may have run, but no part may still be running. If the host has
  /// a copy of bytes that the work may have written, this copy becomes the valid copy; otherwise the home keeps the
  /// bytes that the parts have written.
  void abandon() noexcept;

 private:
  /// Blocks whose state changes when the work on them has been queued.
  struct pending_change {
    coherence::region* region;
    coherence::block_run run;
    coherence::block_event event;
  };

  void lock_and_prepare(const preparation& prepare);
  /// Replaces each access by its parts that are in device memory. If an access has other parts, closes the views of all
  /// its blocks.
  void keep_resident_parts();
  void release(const device_access& access);
  void release_run(coherence::region& r, coherence::block_run run, coherence::block_event event) HPE_REQUIRES(r.mutex);
  void queued(std::span<const device_access> part, std::span<const timepoint> points) noexcept;

  const resources with_;
  region_locks locks_;
  std::vector<device_access> accesses_;  // ordered by region, pure writes last
  std::vector<pending_change> pending_;
  std::vector<timepoint> uploads_;
};

}  // namespace hpe::work
