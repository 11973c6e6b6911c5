#pragma once

/// The compute units of a soft device: a pool of threads that divide the tiles of launches among themselves.

#include <atomic>
#include <list>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "hpe/kernel.h"
#include "runtime/base/thread_safety.h"
#include "runtime/device/soft/softd/crash_guard.h"

namespace hpe::device::soft {

class tile_pool {
 public:
  /// How a launch failed. If `signal` is set, the launch crashed with this signal, or was stopped if is_stop(*signal)
  /// is true. Otherwise the kernel threw an exception, whose message is `exception`.
  struct trouble {
    std::optional<crash> signal;
    std::string exception;
  };

  /// `threads`: the number of threads that run tiles, including the thread that calls run(). The cores are divided into
  /// `shares` parts, and all threads run on part number `share`. If `shares` is 0, the threads run on all cores. Throws
  /// if a thread cannot be started.
  tile_pool(unsigned threads, unsigned share, unsigned shares);

  [[nodiscard]] unsigned threads() const noexcept { return threads_; }

  /// Runs all tiles of a launch and returns when they have ended. If a tile fails, no further tile begins, and run()
  /// returns the first failure; nullopt if no tile failed. Thread-safe: launches that run at the same time share the
  /// threads. `team`: the devices that run parts of the launch (bit d for device d); 0: only this device.
  std::optional<trouble> run(hpeHostKernel body, const void* parameters, const std::uint32_t (&grid)[3],
                             std::uint32_t team = 0);

  /// For kernels whose tiles wait for other tiles: returns further tiles of the launch that the calling thread runs,
  /// which the caller must run in turns with its earlier tiles. Returns nullopt if threads have begun all tiles of the
  /// launch.
  [[nodiscard]] static std::optional<hpeTiles> take_more();

  /// Stops launches whose teams include one of the devices in `lost` (bit d for device d). Returns true if no launch of
  /// these teams runs. The caller repeats the call until it returns true. Thread-safe.
  bool stop_teams(std::uint32_t lost);

 private:
  struct job;
  /// The pool and the launch to which the tiles that a thread runs belong.
  struct tile_owner {
    const tile_pool* pool = nullptr;
    job* task = nullptr;
  };

  void help();
  void work(job& task);
  [[nodiscard]] std::optional<hpeTiles> take(job& task) const;
  void run_tiles(job& task) const;
  void keep_to_cores() const;

  static thread_local tile_owner in_this_thread;

  unsigned threads_, share_, shares_;
  mutex mutex_;
  condition_variable wanted_;
  condition_variable left_;
  std::atomic<std::uint64_t> opened_{0};        // how many launches run() has added to open_; read by spinning threads
  bool ending_ HPE_GUARDED_BY(mutex_) = false;  // set if not all threads could be started
  unsigned ended_ HPE_GUARDED_BY(mutex_) = 0;
  std::list<job*> teams_ HPE_GUARDED_BY(mutex_);  // running launches that belong to teams
  std::list<job*> open_ HPE_GUARDED_BY(mutex_);   // launches that may still have tiles that no thread has begun
};

}  // namespace hpe::device::soft
