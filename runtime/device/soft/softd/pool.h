#pragma once

/// The compute units of a soft device: threads that share the tiles of launches.

#include <atomic>
#include <list>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "hpe/kernel.h"
#include "runtime/base/thread_safety.h"
#include "runtime/device/soft/softd/guard.h"

namespace hpe::device::soft {

class tile_pool {
 public:
  /// How a launch failed: by a signal (is_stop: it was stopped), or by an exception with this message.
  struct trouble {
    std::optional<crash> signal;
    std::string exception;
  };

  /// `threads` includes the caller of run, which works as well. All threads are bound to share `share` of the cores,
  /// which are divided into `shares`; with 0 shares they are not bound.
  tile_pool(unsigned threads, unsigned share, unsigned shares);

  [[nodiscard]] unsigned threads() const noexcept { return threads_; }

  /// Runs all tiles and returns when they are done. After trouble in one tile no further tile begins. Thread-safe;
  /// launches that run at the same time share the threads.
  /// `team`: the devices that run parts of the launch, bit d; 0: this device alone.
  std::optional<trouble> run(hpeHostKernel body, const void* parameters, const std::uint32_t (&grid)[3],
                             std::uint32_t team = 0);

  /// Tiles of the calling thread's launch that no thread has begun, at most one share of them; none if all are begun.
  /// For bodies of launches whose tiles wait for others: the calling body runs them beside those that it has.
  [[nodiscard]] static std::optional<hpeTiles> take_more();

  /// Stops launches whose teams include one of these devices. Returns true if none of them is left. Thread-safe.
  bool stop_teams(std::uint32_t lost);

 private:
  struct job;
  /// The pool and the launch whose tiles a thread runs.
  struct place {
    const tile_pool* pool = nullptr;
    job* task = nullptr;
  };

  [[noreturn]] void help();
  void work(job& task);
  [[nodiscard]] std::optional<hpeTiles> take(job& task) const;
  void run_tiles(job& task) const;
  void keep_to_cores() const;

  static thread_local place in_this_thread;

  unsigned threads_, share_, shares_;
  mutex mutex_;
  condition_variable wanted_;
  condition_variable left_;
  std::atomic<std::uint64_t> opened_{0};  // launches that were put into open_, for threads that do not sleep yet
  std::list<job*> teams_ HPE_GUARDED_BY(mutex_);  // launches of teams
  std::list<job*> open_ HPE_GUARDED_BY(mutex_);   // launches that may have tiles which are not begun
};

}  // namespace hpe::device::soft
