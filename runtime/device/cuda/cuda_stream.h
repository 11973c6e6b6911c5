#pragma once

/// One CUDA stream. Its commands are numbered from 1. An event follows each command; the stream queries the events to
/// learn which commands have finished.
///
/// One command of hpe may be several commands of the driver (pieces of a copy). If the driver refuses a later piece,
/// hpe's command counts as queued and as failed. The event is created before anything is queued. If the driver cannot
/// record the event after the command, the calling thread waits until the command has finished.

#include <atomic>
#include <chrono>
#include <deque>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/device/cuda/driver.h"
#include "runtime/device/cuda/host_memory.h"
#include "runtime/device/observer.h"

namespace hpe::device::cuda {

class cuda_set;
class cuda_device;

class cuda_stream final : public stream {
 public:
  static constexpr std::uint64_t all = std::numeric_limits<std::uint64_t>::max();

  /// `number`: the number of the stream's timeline.
  cuda_stream(cuda_set& set, cuda_device& device, std::uint32_t number, priority level);
  /// The stream's work must have finished, or its device must be lost.
  ~cuda_stream() override;

  timepoint copy(void* destination, const void* source, std::size_t bytes) override;
  timepoint fill(void* destination, std::uint8_t value, std::size_t bytes) override;
  timepoint launch(kernel_id kernel, const shape& shape, std::span<const std::byte> parameters) override;
  timepoint enqueue(const std::function<int(void*)>& function) override;
  void wait(timepoint point) override;
  [[nodiscard]] timepoint last() const override;

  // For the set and its devices:

  [[nodiscard]] cuda_device& device() const noexcept { return device_; }
  /// Costs one load if the answer is already known, otherwise a query of an event.
  [[nodiscard]] bool reached(std::uint64_t value) noexcept;
  /// Never asks the driver. False may mean that no thread has asked the driver yet.
  [[nodiscard]] bool known_reached(std::uint64_t value) const noexcept { return completed_.load() >= value; }
  /// The last command that had finished when the device was lost; `all` if the device is not lost.
  [[nodiscard]] std::uint64_t lost_after() const noexcept { return lost_after_.load(); }
  /// The error of a command that failed before the device was lost. The stream keeps the errors of the last hundred
  /// failures.
  [[nodiscard]] std::optional<error> failure_of(std::uint64_t value) const;
  /// If a long queue of commands is waiting, the point at which half of the queue is done; otherwise none().
  [[nodiscard]] timepoint end_of_crowd() const noexcept;
  /// From now on, all commands count as reached. Returns the name of the kernel that would have run next, or an empty
  /// name.
  std::string lose();
  /// A function that was given to enqueue() calls this if it has queued its work on another stream of the device's
  /// context. The command ends when the other stream has finished that work. All unfinished commands of this stream
  /// must be on that other stream.
  void ends_on(CUstream other) noexcept { end_ = other; }
  /// Makes `follower` wait for a command of this stream.
  void hold(CUstream follower, std::uint64_t value);

 private:
  static constexpr std::size_t kept_failures = 100;
  // The driver has about a thousand entries for all streams that share a hardware queue. When they are used up, its
  // functions block. A command of hpe needs several entries: waits, the command, an event.
  static constexpr std::uint64_t long_queue = 256;

  struct command {
    std::uint64_t value;
    CUevent done;          // null while the command is being queued
    std::uint32_t kernel;  // kernel_id::function + 1; 0: no kernel
  };
  /// The memory on one side of a copy.
  enum class side : std::uint8_t { host, device };

  [[nodiscard]] side check_range(const void* address, std::size_t bytes, const char* role) const;
  [[nodiscard]] std::size_t queue_piece(std::uintptr_t to, side to_side, std::uintptr_t from, side from_side,
                                        std::size_t bytes, std::vector<host_memory::use>& uses);

  /// Queues one command. `queue(pieces)` calls the driver, and counts in `pieces` the commands that the driver has
  /// accepted. If the driver has accepted none, rethrows the error of `queue`.
  template <class Queue>
  timepoint submit(const observed_command& what, const Queue& queue);
  /// Adds an entry for a command; the caller holds queue_. Returns the event that will follow the command.
  [[nodiscard]] CUevent announce(std::uint32_t kernel);
  /// Removes the entry of a command that was not queued.
  void withdraw(CUevent done) noexcept;
  /// Completes the entry of a command that was queued in full or in part.
  timepoint queued(CUevent done, const std::optional<error>& failure);
  /// Waits until no work of this stream runs. If the driver reports an error, the device is lost.
  void drain() noexcept;
  void check(CUresult result, const char* what);

  cuda_set& set_;
  cuda_device& device_;
  const driver& cu_;
  const std::uint32_t number_;
  CUstream stream_ = nullptr;

  CUstream end_ = nullptr;  // if not null: the stream on which the command being queued ends; guarded by queue_
  std::mutex queue_;        // held while a command is queued, for a long time if the driver's queue is full
  std::atomic<std::uint64_t> submitted_{0};

  mutable std::mutex pending_mutex_;  // held only for a short time; guards the members below
  std::deque<command> pending_;
  std::vector<CUevent> unused_;  // has capacity for all existing events
  std::size_t events_made_ = 0;
  std::vector<std::pair<std::uint64_t, error>> failures_;  // failures of commands, oldest first; capacity for all
  std::chrono::steady_clock::time_point asked_{};          // when pending_.front() was last seen unfinished
  std::atomic<std::uint64_t> completed_{0};
  std::atomic<std::uint64_t> lost_after_{all};
};

}  // namespace hpe::device::cuda
