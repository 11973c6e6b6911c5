#pragma once

/// The work that kernels of a grid queue on their own device while they run (dynamic parallelism): launches, copies,
/// fills.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/ptx/execution/block.h"

namespace hpe::ptx {

/// One piece of queued work.
struct queued_work {
  /// The launched kernel; null if the work is a copy or a fill. `parameters` is memory in the kernels' heap, which the
  /// owner of the work releases.
  const function* kernel = nullptr;
  dimensions grid, block;
  std::uint32_t dynamic_shared = 0;
  void* parameters = nullptr;

  /// If `kernel` is null: a copy of rows, or a fill if `from` is also null.
  std::uint8_t* to = nullptr;
  const std::uint8_t* from = nullptr;
  std::size_t to_pitch = 0, from_pitch = 0, width = 0, height = 0;
  std::uint8_t value = 0;

  void copy_or_fill() const;
};

/// The queue of one grid. Thread-safe, because all threads of the grid use it.
class device_queue {
 public:
  using release_memory = std::function<void(void*)>;

  /// `release` frees the parameters of launches that were prepared but never queued.
  explicit device_queue(release_memory release) : release_(std::move(release)) {}
  ~device_queue();
  device_queue(const device_queue&) = delete;
  device_queue& operator=(const device_queue&) = delete;

  /// Stores a launch whose parameters the kernel will write later. The address of the parameters identifies the launch.
  void prepare(const queued_work& launch);
  /// Removes and returns the launch that was prepared with these parameters; empty if there is no such launch.
  [[nodiscard]] std::optional<queued_work> take_prepared(void* parameters);

  /// Queues work. `is_tail`: the work runs after everything else that the grid and its descendants have queued.
  void add(const queued_work& what, bool is_tail);

  /// Returns the last error of a thread, as a CUDA error code. `thread` is a number that identifies the thread.
  [[nodiscard]] std::uint32_t error(std::uint64_t thread) const;
  void set_error(std::uint64_t thread, std::uint32_t code);

  /// Returns a number for a new stream or event. The work of all streams runs in the order in which it was queued, so
  /// these numbers have no further meaning.
  [[nodiscard]] std::uint64_t new_handle();

  struct content {
    std::deque<queued_work> children, tails;
  };
  /// Removes and returns all queued work. Call this after the grid has ended.
  [[nodiscard]] content take();

 private:
  const release_memory release_;
  mutable std::mutex mutex_;
  std::unordered_map<void*, queued_work> prepared_;
  std::map<std::uint64_t, std::uint32_t> errors_;
  std::uint64_t handles_ = 0;
  content content_;
};

/// Determines the order in which a grid's descendants run: work that a grid has queued runs before work that its parent
/// queued later, and tail launches run last. Not thread-safe.
class descendants {
 public:
  /// Adds queued work. Call this with the content of the first grid's queue, and then, for each launch that next()
  /// returned, with the content of the queue of that launch's grid.
  void enter(device_queue::content queued);
  /// Removes and returns the next piece of work; empty if all work has been returned.
  [[nodiscard]] std::optional<queued_work> next();

 private:
  // a stack: the content of a grid is above that of the grid that launched it
  std::vector<device_queue::content> open_;
};

}  // namespace hpe::ptx
