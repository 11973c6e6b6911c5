#pragma once

/// Announced work: work that waits in queues of the program and has not been passed to the runtime yet
/// (hpe/announce.h). An announcement lists the memory that the work may use between the call that queued the work and
/// the end of the work. CPU code waits for announced work as for the runtime's own work. Launches also wait for
/// announced work before they are queued. Only concurrent work (hpeLaunchGridAfter) does not wait, because the program
/// itself orders concurrent work and announced work.
///
/// An announcement is also a release: core/announcer closes the views of the announced memory, and no lane
/// (fault/lane.h) opens a view that an announcement forbids. So CPU code that touches the bytes after the announcement
/// always waits.

#include <atomic>
#include <cstdint>
#include <map>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/coherence/region.h"

namespace hpe::coherence {

/// The number of an announcement; 0 stands for no announcement.
using announcement_number = std::uint64_t;

class announcements {
 public:
  /// Bytes of one region that announced work reads, or reads and writes.
  struct announced_use {
    std::uint32_t region = 0;
    byte_range range;
    bool write = false;
  };

  /// Adds work that may use the ranges in `uses` and all memory with one of these homes (a bit for each home). If
  /// `homes` is not 0, the work may also use all mapped files and all host memory.
  announcement_number add(std::uint64_t homes, std::vector<announced_use> uses);
  /// Removes work that has finished. Returns true if in_the_way has returned this number in a call with `watch`. The
  /// caller must then make the lanes check their waiting requests.
  bool remove(announcement_number number);

  /// Whether any announcement exists.
  [[nodiscard]] bool any() const noexcept { return count_ != 0; }

  /// The latest announcement for which CPU code must wait before it reads or writes the range. 0 if CPU code need not
  /// wait, and always 0 for host memory. With `watch`, remove() will return true for this announcement. The caller
  /// holds the region's mutex.
  [[nodiscard]] announcement_number in_the_way(const region& r, byte_range range, bool write, bool watch = false);

  /// Waits until the announcement is removed.
  void wait_for(announcement_number number);
  /// Waits until no announcement forbids reading or writing the range. Returns at once if the calling thread executes
  /// announced work. The caller must not hold the region's mutex.
  void wait_before(const region& r, byte_range range, bool write);
  /// Like wait_before, before the range is freed: waits for all announced work that may use it, also in host memory.
  void wait_before_free(const region& r, byte_range range);

 private:
  struct pending_announcement {
    std::uint64_t homes = 0;
    std::vector<announced_use> uses;
    bool watched = false;
  };

  /// The latest announcement whose work may use the range, in any memory.
  [[nodiscard]] announcement_number latest_use(const region& r, byte_range range, bool write, bool watch);
  /// Waits as long as `in_the_way`, called with the region's mutex held, returns an announcement.
  template <class Find>
  void wait_while(const region& r, byte_range range, const Find& in_the_way);

  std::atomic<std::uint64_t> count_{0};  // any() reads it without the mutex
  mutex mutex_;
  condition_variable removed_;
  std::uint64_t waiting_ HPE_GUARDED_BY(mutex_) = 0;  // the number of threads that wait for removed_
  announcement_number last_ HPE_GUARDED_BY(mutex_) = 0;
  std::map<announcement_number, pending_announcement> entries_ HPE_GUARDED_BY(mutex_);
};

/// The state of a thread with regard to announced work.
struct announced_thread {
  bool at_work = false;      ///< the thread executes announced work, so its accesses wait for no announcement
  bool used_a_view = false;  ///< a lane has opened a view for the thread, perhaps although an announcement forbids it
};

/// The state of the calling thread. May be called in a signal handler.
[[nodiscard]] announced_thread& this_announced_thread() noexcept;

}  // namespace hpe::coherence
