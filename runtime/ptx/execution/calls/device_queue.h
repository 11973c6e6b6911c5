#pragma once

/// The work that the kernels of a grid queue on their own device (dynamic parallelism): launches, copies and fills.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/ptx/execution/block.h"

namespace hpe::ptx {

/// A queued launch, copy or fill.
struct queued_work {
  /// The launched kernel; null for a copy or a fill. `parameters` is memory in the kernels' heap, which the owner of
  /// this object must release.
  const function* kernel = nullptr;
  dimensions grid, block;
  std::uint32_t dynamic_shared = 0;
  void* parameters = nullptr;

  /// The rows of a copy; if `from` is null, the rows of a fill.
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

  /// Stores a launch whose parameters the kernel writes later. The address of the parameters identifies the launch.
  void prepare(const queued_work& launch);
  /// Removes and returns the prepared launch with these parameters; empty if there is none.
  [[nodiscard]] std::optional<queued_work> take_prepared(void* parameters);

  /// Queues work. `is_tail`: whether the work runs after all other work that the grid and its descendants have queued.
  void add(const queued_work& what, bool is_tail);

  /// Returns the last error of a thread, as a CUDA error code. `thread` is a number that identifies the thread.
  [[nodiscard]] std::uint32_t error(std::uint64_t thread) const;
  void set_error(std::uint64_t thread, std::uint32_t code);

  /// Returns a handle for a new stream or event. hpe runs the work of all streams in the order in which kernels queued
  /// it, so handles have no other purpose.
  [[nodiscard]] std::uint64_t new_handle();

  struct content {
    std::deque<queued_work> children, tails;
  };
  /// Removes and returns all queued work. Call this after the grid has ended.
  [[nodiscard]] content take();

 private:
  const release_memory release_;
  mutable mutex mutex_;
  std::unordered_map<void*, queued_work> prepared_ HPE_GUARDED_BY(mutex_);
  std::map<std::uint64_t, std::uint32_t> errors_ HPE_GUARDED_BY(mutex_);
  std::uint64_t handles_ HPE_GUARDED_BY(mutex_) = 0;
  content content_ HPE_GUARDED_BY(mutex_);
};

/// Determines the order in which a grid's descendants run. Work that a grid has queued runs before work that the grid's
/// parent queued later, and tail launches run last. Not thread-safe.
class descendants {
 public:
  /// Adds queued work. Call this first with the content of the first grid's queue. Then call it, for each launch that
  /// next() returns, with the content of the queue of that launch's grid.
  void enter(device_queue::content queued);
  /// Removes and returns the next launch, copy or fill; empty if there is none.
  [[nodiscard]] std::optional<queued_work> next();

 private:
  // A stack: the content of a grid's queue is above the content of its parent's queue.
  std::vector<device_queue::content> open_;
};

}  // namespace hpe::ptx
