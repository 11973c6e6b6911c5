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
  /// How a launch failed: with a signal (if is_stop(*signal) is true, the launch was stopped), or with an exception
  /// whose message is `exception`.
  struct trouble {
    std::optional<crash> signal;
    std::string exception;
  };

  /// `threads` includes the caller of run, which works as well. All threads run on part number `share` of the cores,
  /// which are divided into `shares` parts; if `shares` is 0, they run on all cores.
  tile_pool(unsigned threads, unsigned share, unsigned shares);

  [[nodiscard]] unsigned threads() const noexcept { return threads_; }

  /// Runs all tiles and returns when they are done. After trouble in one tile, no further tile begins. Thread-safe;
  /// launches that run at the same time share the threads. `team`: the devices that run parts of the launch (bit d for
  /// device d); 0: only this device.
  std::optional<trouble> run(hpeHostKernel body, const void* parameters, const std::uint32_t (&grid)[3],
                             std::uint32_t team = 0);

  /// Takes the next portion of tiles that no thread has begun, from the launch that the calling thread runs; returns
  /// nothing if threads have begun all its tiles. For bodies of launches whose tiles wait for other tiles: the calling
  /// body runs the new tiles in turns with its earlier tiles.
  [[nodiscard]] static std::optional<hpeTiles> take_more();

  /// Stops launches whose teams include one of these devices. Returns true if no launch of this kind is left.
  /// Thread-safe.
  bool stop_teams(std::uint32_t lost);

 private:
  struct job;
  /// The pool and the launch of the tiles that a thread runs.
  struct place {
    const tile_pool* pool = nullptr;
    job* task = nullptr;
  };

  void help();
  void work(job& task);
  [[nodiscard]] std::optional<hpeTiles> take(job& task) const;
  void run_tiles(job& task) const;
  void keep_to_cores() const;

  static thread_local place in_this_thread;

  unsigned threads_, share_, shares_;
  mutex mutex_;
  condition_variable wanted_;
  condition_variable left_;
  std::atomic<std::uint64_t> opened_{0};        // launches added to open_ so far, for threads that spin
  bool ending_ HPE_GUARDED_BY(mutex_) = false;  // set if not all threads could be started
  unsigned ended_ HPE_GUARDED_BY(mutex_) = 0;
  std::list<job*> teams_ HPE_GUARDED_BY(mutex_);  // launches of teams
  std::list<job*> open_ HPE_GUARDED_BY(mutex_);   // launches that may still have tiles that no thread has begun
};

}  // namespace hpe::device::soft
