#pragma once

#include <driver_types.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "hpe/hpe.h"
#include "runtime/check/order.h"

namespace hpe::cudart {

/// The memory that a task may use. From the time the work is queued until it has finished, CPU code that touches the
/// memory of `kernels_on` and `ranges` waits.
struct task_memory_uses {
  std::uint64_t kernels_on = 0;     ///< a bit for each device on which kernels run whose use of memory is unknown
  std::vector<hpeAccess> ranges{};  ///< further ranges that the work may use; ordinary memory is ignored
  // For the checker:
  std::vector<check::past_ptr> follows{};  ///< work for whose end the work waits while it runs
  bool waits_for_unknown = false;          ///< the work waits for something that hpe cannot relate to other work
  bool waits_for_values = false;           ///< the work calls tell_values() (checked_work.h)
  bool is_memset = false;                  ///< the program need not wait for the work before it ends

  /// Adds a node of a graph. The writers of the values for which a single node waits are not known.
  void add(const task_memory_uses& other) {
    kernels_on |= other.kernels_on;
    ranges.insert(ranges.end(), other.ranges.begin(), other.ranges.end());
    follows.insert(follows.end(), other.follows.begin(), other.follows.end());
    waits_for_unknown = waits_for_unknown || other.waits_for_unknown || other.waits_for_values;
  }
};

/// A task for a stream. The stream's thread calls the object, and the work has finished when the call returns. If the
/// call returns an error, this error becomes the device's sticky error: the device's streams drop all later work, and
/// calls for these streams return the error.
class stream_task {
 public:
  stream_task() = default;
  template <class Function>
  requires(!std::same_as<Function, stream_task> && std::is_invocable_r_v<cudaError_t, Function&>)
      // NOLINTNEXTLINE(google-explicit-constructor): a function is work
      stream_task(Function run, task_memory_uses uses = {})
      : run_(std::move(run)), uses_(std::move(uses)) {}

  cudaError_t operator()() const { return run_(); }
  explicit operator bool() const { return static_cast<bool>(run_); }
  [[nodiscard]] const task_memory_uses& uses() const noexcept { return uses_; }

 private:
  std::function<cudaError_t()> run_;
  task_memory_uses uses_;
};

/// An announcement to hpe of queued work. While the object exists, CPU code waits before it touches memory that the
/// work uses. Work that uses no memory is announced too, because its functions may access memory that work behind it in
/// the stream uses: a host function touches any memory, a wait reads the value for which it waits, and the last launch
/// of a destroyed graph frees the graph's memory.
class announced_work {
 public:
  announced_work() = default;
  virtual ~announced_work() = default;  ///< the object is destroyed when the work has finished or has been dropped
  announced_work(const announced_work&) = delete;
  announced_work& operator=(const announced_work&) = delete;

  /// The thread that runs the work calls begin() before the work begins. After this call, until the object is
  /// destroyed, accesses by this thread do not wait for announced work.
  virtual void begin() = 0;
};

/// The function by which streams announce queued work. The function may return null. The thread that queues the work
/// calls the function without holding locks.
using announce_work = std::function<std::shared_ptr<announced_work>(const task_memory_uses&)>;

}  // namespace hpe::cudart
