#pragma once

/// Work that waits in queues of the program and was not yet given to the runtime (hpe/announce.h): the memory that it
/// may use, from the call that queued it to its end. CPU code waits for it as for the runtime's own work. Device work
/// does not, because the program that queued both keeps their order.
///
/// An announcement is a release, too: views are closed when it is made (core/announcer), and no lane opens a view that
/// an announcement forbids. So CPU code cannot have touched the bytes since then without waiting.

#include <atomic>
#include <cstdint>
#include <map>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/coherence/region.h"

namespace hpe::coherence {

/// The number of an announcement; 0: none.
using announcement_number = std::uint64_t;

class announcements {
 public:
  /// Bytes of one region that announced work reads, or reads and writes.
  struct use {
    std::uint32_t region = 0;
    byte_range range;
    bool write = false;
  };

  /// Enters work that may use all memory with one of these homes (a bit for each), except host memory, and `uses`.
  announcement_number add(std::uint64_t homes, std::vector<use> uses);
  /// Removes work that has finished. True if in_the_way reported it with `watch`: lanes must check again.
  bool remove(announcement_number number);

  /// Whether there is any announcement.
  [[nodiscard]] bool any() const noexcept { return count_ != 0; }

  /// The latest announcement that CPU code must wait for before it reads or writes the range; 0 for none, and always
  /// for host memory. With `watch`, its remove() returns true. The caller holds the region's mutex.
  [[nodiscard]] announcement_number in_the_way(const region& r, byte_range range, bool write, bool watch = false);

  /// Waits until the announcement is removed.
  void wait_for(announcement_number number);
  /// Waits until no announcement forbids reading or writing the range. Returns at once if the calling thread does
  /// announced work. The caller must not hold the region's mutex.
  void wait_before(const region& r, byte_range range, bool write);

 private:
  struct entry {
    std::uint64_t homes = 0;
    std::vector<use> uses;
    bool watched = false;
  };

  std::atomic<std::uint64_t> count_{0};  // lets any() do without the mutex
  mutex mutex_;
  condition_variable removed_;
  std::uint64_t waiting_ HPE_GUARDED_BY(mutex_) = 0;  // threads that wait for removed_
  announcement_number last_ HPE_GUARDED_BY(mutex_) = 0;
  std::map<announcement_number, entry> entries_ HPE_GUARDED_BY(mutex_);
};

/// The state of a thread with regard to announced work.
struct announced_thread {
  bool at_work = false;      ///< its accesses wait for no announcement: all that its work depends on has finished
  bool used_a_view = false;  ///< a lane opened a view for it, perhaps one that an announcement forbids
};

/// The state of the calling thread. Safe in a signal handler.
[[nodiscard]] announced_thread& this_announced_thread() noexcept;

}  // namespace hpe::coherence
