#pragma once

/// Work that the program has queued somewhere else and the runtime is not given yet (hpe/announce.h): what it may use,
/// from the call that queued it to its end. CPU code waits for it as for work of the runtime's own; device work does
/// not, because whoever queued it keeps the order among its own work.
///
/// An announcement is a release, too: views are closed when it is made (core/announcer), and lanes open none that it is
/// in the way of. So CPU code cannot have used the bytes since without having waited.

#include <atomic>
#include <cstdint>
#include <map>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/coherence/region.h"

namespace hpe::coherence {

/// Which announcement; 0: none.
using announcement_number = std::uint64_t;

class announcements {
 public:
  /// Bytes of one region that announced work reads, or reads and writes.
  struct use {
    std::uint32_t region = 0;
    byte_range range;
    bool write = false;
  };

  /// Work that may use all memory with one of these homes (a bit for each), host memory not, and what `uses` names.
  announcement_number add(std::uint64_t homes, std::vector<use> uses);
  /// The work has finished. True if a lane was told of it by in_the_way and has to look again.
  bool remove(announcement_number number);

  /// Whether there are any.
  [[nodiscard]] bool any() const noexcept { return count_ != 0; }

  /// The latest announcement that CPU code waits for before it reads or writes the range; 0 for none, as always for
  /// host memory. watch: remove() tells of it. Under the region's mutex.
  [[nodiscard]] announcement_number in_the_way(const region& r, byte_range range, bool write, bool watch = false);

  /// Waits until an announcement was removed.
  void wait_for(announcement_number number);
  /// Waits until none is in the way of reading or writing the range, unless the calling thread does announced work.
  /// Without the region's mutex.
  void wait_before(const region& r, byte_range range, bool write);

 private:
  struct entry {
    std::uint64_t homes = 0;
    std::vector<use> uses;
    bool watched = false;
  };

  std::atomic<std::uint64_t> count_{0};  // so that nobody takes the mutex for nothing
  mutex mutex_;
  condition_variable removed_;
  std::uint64_t waiting_ HPE_GUARDED_BY(mutex_) = 0;  // threads at removed_
  announcement_number last_ HPE_GUARDED_BY(mutex_) = 0;
  std::map<announcement_number, entry> entries_ HPE_GUARDED_BY(mutex_);
};

/// What a thread is that does announced work itself.
struct announced_thread {
  bool at_work = false;      ///< its accesses wait for no announcement: all that its work comes after has finished
  bool used_a_view = false;  ///< a lane opened a view for it, perhaps one that announcements keep closed
};

/// The calling thread's. Safe in a signal handler.
[[nodiscard]] announced_thread& this_announced_thread() noexcept;

}  // namespace hpe::coherence
