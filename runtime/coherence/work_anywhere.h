#pragma once

/// Device work that may use any memory that its device reaches: hpe does not know the accesses of some kernels. Such
/// work relies on the state of all regions, and all regions' users must wait for the work. If all regions are *settled*
/// (the device has all their memory and the only valid copy of their bytes), hpe records the work here, once, so that
/// the cost of the work does not depend on the number of regions. Otherwise, hpe records the work in the order of each
/// region.
///
/// Lock order: the mutex comes after mutexes of regions. A thread that changes a region's state, while it holds the
/// region's mutex, calls unsettle() before it asks the region's order for the users. So either it finds the work, or
/// the work finds that the regions are no longer settled.

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <optional>

#include "runtime/base/thread_safety.h"
#include "runtime/coherence/point_set.h"

namespace hpe::coherence {

/// Thread-safe.
class work_anywhere {
 public:
  /// A region may no longer be settled.
  void unsettle() noexcept { epoch_.fetch_add(1); }
  /// A number that unsettle() changes.
  [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_.load(); }
  /// How often a region has got homes, when it began or later.
  [[nodiscard]] std::uint64_t new_homes() const noexcept { return new_homes_.load(); }
  void note_new_homes() noexcept {
    new_homes_.fetch_add(1);
    unsettle();
  }

  /// Queues work that may use any memory of these homes (a bit for each device) and all memory of the host: adds to
  /// `after` the earlier work for which this work must wait, and then calls queue(), which returns the timepoint of
  /// this work, or throws if queue() has queued nothing. Returns nullopt, and queues nothing, if unsettle() was called
  /// since epoch() returned `epoch`. The caller may hold mutexes of regions.
  template <class Queue>
  std::optional<timepoint> use(std::uint64_t homes, std::uint64_t epoch, point_set& after, const Queue& queue) {
    const lock_guard lock(mutex_);
    if (epoch_.load() != epoch) return std::nullopt;
    for_each(homes, [&](of_home& h) {
      after.add(h.named);
      h.anywhere.reserve();
    });
    host_.anywhere.reserve();
    after.add(host_.named);
    const timepoint point = queue();
    for_each(homes, [&](of_home& h) { h.anywhere.add(point); });
    host_.anywhere.add(point);
    uses_.fetch_add(1, std::memory_order_relaxed);
    return point;
  }
  /// How often use() has queued work.
  [[nodiscard]] std::uint64_t uses() const noexcept { return uses_.load(std::memory_order_relaxed); }

  /// To be called before a thread looks whether all regions are settled, for the first call of use().
  void start() noexcept { is_used_ = true; }
  /// Records work on regions with these homes (0: memory of the host) for which later work of use() must wait.
  void note_named(std::uint64_t homes, timepoint point) {
    if (!is_used_.load(std::memory_order_relaxed)) return;
    const lock_guard lock(mutex_);
    for_each(homes, [&](of_home& h) { h.named.add(point); });
    if (homes == 0) host_.named.add(point);
  }
  /// Adds the work of use() for these homes to `result`.
  void add_users(std::uint64_t homes, point_set& result) const {
    if (!is_used_.load(std::memory_order_relaxed)) return;
    const lock_guard lock(mutex_);
    const auto add = [&](const of_home& h) { result.add(h.anywhere); };
    for_each(homes, add);
    if (homes == 0) add(host_);
  }

 private:
  struct of_home {
    point_set named;
    point_set anywhere;
  };
  template <class Visit>
  void for_each(std::uint64_t homes, const Visit& visit) HPE_REQUIRES(mutex_) {
    for (; homes != 0; homes &= homes - 1) visit(homes_[static_cast<std::size_t>(std::countr_zero(homes))]);
  }
  template <class Visit>
  void for_each(std::uint64_t homes, const Visit& visit) const HPE_REQUIRES(mutex_) {
    for (; homes != 0; homes &= homes - 1) visit(homes_[static_cast<std::size_t>(std::countr_zero(homes))]);
  }

  std::atomic<std::uint64_t> epoch_{1};
  std::atomic<std::uint64_t> new_homes_{0};
  std::atomic<std::uint64_t> uses_{0};
  std::atomic<bool> is_used_{false};
  mutable mutex mutex_;
  std::array<of_home, 64> homes_ HPE_GUARDED_BY(mutex_);
  of_home host_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::coherence
