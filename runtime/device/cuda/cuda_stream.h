#pragma once

/// One CUDA stream. The stream's commands are numbered from 1. An event follows each command, and cuda_stream queries
/// these events to find out which commands have finished.
///
/// One copy or fill of hpe may consist of several commands of the driver, each for one part of the memory. If the
/// driver accepts the first command but refuses a later command, hpe's command counts as queued and as failed. The
/// event is created before the driver gets the command. If the driver has accepted only some commands, or cannot record
/// the event after the command, the calling thread waits until the stream has finished all its commands.
///
/// A command that ends on another stream (ends_on) may be *open*: its event is not recorded yet. Later work on the
/// other stream becomes part of the open command, without an event of its own. The command ends, and its event is
/// recorded, when a caller asks whether the command is reached or waits for it, when another command is queued, when
/// most_joined pieces of work have joined it, or at divide() (if all its work is *lasting*, only before a wait).

#include <atomic>
#include <chrono>
#include <deque>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/function_ref.h"
#include "runtime/device/cuda/cuda_pinned_memory.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/device/observer.h"

namespace hpe::device::cuda {

class cuda_set;
class cuda_device;

/// What divides the earlier work of a stream from the later work, as the program can notice it.
enum class division : std::uint8_t {
  mark,          ///< the device notes the end of the earlier work: an event, a value in memory
  waited,        ///< the calling thread has waited for all work that it had queued on the stream
  perhaps_idle,  ///< the program has waited for work, perhaps for the earlier work
  before_wait    ///< the stream waits for something before the later work: an event, a value, a function of the program
};

class cuda_stream final : public stream {
 public:
  static constexpr std::uint64_t all = std::numeric_limits<std::uint64_t>::max();

  /// `number`: the number of the stream's timeline.
  cuda_stream(cuda_set& set, cuda_device& device, std::uint32_t number, priority level);
  /// The stream's commands must have finished, or the stream's device must be lost.
  ~cuda_stream() override;

  timepoint copy(void* destination, const void* source, std::size_t bytes) override;
  timepoint copy_rows(void* destination, const void* source, const box& rows) override;
  timepoint fill(void* destination, std::uint8_t value, std::size_t bytes) override;
  timepoint take_fingerprint(fingerprint* result, const void* source, std::size_t bytes) override;
  timepoint launch(kernel_id kernel, const shape& shape, std::span<const std::byte> parameters) override;
  timepoint launch(CUgraphExec graph);
  timepoint enqueue(const std::function<int(void*)>& function) override;
  void wait(timepoint point) override;
  [[nodiscard]] timepoint last() const override;

  // For the cuda_set and its devices:

  [[nodiscard]] cuda_device& device() const noexcept { return device_; }
  /// Returns the driver's stream; creates it if this is its first use. The device's context must be current.
  [[nodiscard]] CUstream handle() {
    const std::lock_guard lock(queue_);
    make();
    return stream_;
  }
  /// Returns whether the command with this number is known to have finished. If not yet known, queries events, at most
  /// once in a microsecond while the command is unfinished, so the result may be false for about this time after the
  /// end. Ends the command if it is open.
  [[nodiscard]] bool reached(std::uint64_t value) noexcept;
  /// Like reached(), but never queries an event. False may mean that the command has finished, but that no query has
  /// found this out.
  [[nodiscard]] bool known_reached(std::uint64_t value) const noexcept { return completed_.load() >= value; }
  /// Returns the number of the last command that was known to have finished when the device was lost; `all` if the
  /// device is not lost.
  [[nodiscard]] std::uint64_t lost_after() const noexcept { return lost_after_.load(); }
  /// Returns the error of a command that failed before the device was lost; nullopt if the command did not fail. The
  /// stream keeps the errors of the last hundred failures only.
  [[nodiscard]] std::optional<error> failure_of(std::uint64_t value) const;
  /// Whether the unfinished commands have more than long_queue entries in a hardware queue. Costs two loads.
  [[nodiscard]] bool is_crowded() const noexcept;
  /// If is_crowded(), returns the point after which about half of the entries remain; otherwise none().
  [[nodiscard]] timepoint end_of_crowd() const noexcept;
  /// Marks the stream as lost with its device: all commands count as reached.
  void lose() noexcept;
  /// Returns the name of the kernel that was running or would have run next when the stream was lost; an empty name if
  /// there was no such kernel.
  [[nodiscard]] std::string lost_kernel() const;
  /// How long the command that contains a piece of work may stay open.
  enum class openness : std::uint8_t {
    none,           ///< not at all
    until_divided,  ///< until divide(), because a caller may wait for this work, but not for later work
    lasting         ///< after divide() too, unless the stream is about to wait; but then only lasting work may join: a
                    ///< thread that waits for lasting work waits for all lasting work of the stream
  };
  /// A function that is passed to enqueue() calls this if it has queued its work on another stream, `other`, of the
  /// device's context. The command then ends when `other` has finished this work. Before, the function must have made
  /// `other` wait for all unfinished commands of this stream. If the command may stay open, all commands of this stream
  /// must end on `other`, until end_open() has returned.
  void ends_on(CUstream other, openness how) noexcept {
    end_ = other;
    openness_ = how;
    ends_elsewhere_.store(true, std::memory_order_relaxed);
  }
  /// Whether any command of this stream has ended on another stream.
  [[nodiscard]] bool ends_elsewhere() const noexcept { return ends_elsewhere_.load(std::memory_order_relaxed); }
  /// To be called when the program can wait for the work queued so far, but not for later work. Ends the open command,
  /// if there is one. But a command whose work is all lasting ends only before other work is submitted, unless `where`
  /// is division::before_wait.
  void divide(division where) noexcept;
  /// If the command with this number is open, calls queue(), which may queue work on the stream on which the command
  /// ends, so that the work becomes part of the command. Otherwise returns false.
  bool join(std::uint64_t value, function_ref<void()> queue);
  /// Ends the open command, if there is one with at most this number. Waits while a thread queues a command or calls
  /// join(). The caller must do neither.
  enum class opening : bool { missed, awaited };  ///< whether to wait for a thread that may be opening a command
  void end_open(std::uint64_t value = all, opening now = opening::missed) noexcept;
  /// Makes `follower` wait for a command of this stream, which must not be open.
  void hold(CUstream follower, std::uint64_t value);

 private:
  static constexpr std::size_t kept_failures = 100;
  // All streams that share a hardware queue share about a thousand entries of this queue. When all entries are in use,
  // functions of the driver block. One command of hpe needs several entries: for its waits, the command and its event.
  // A piece of work that joins an open command needs one entry.
  static constexpr std::uint64_t long_queue = 896, entries_of_command = 3;
  static constexpr unsigned most_joined = 128;  // pieces of work in one open command

  struct command {
    std::uint64_t value;
    CUevent done;               // null while the command is being queued or open
    std::uint32_t kernel;       // kernel_id::function + 1; 0: no kernel
    std::uint64_t entries = 0;  // the sum of entries_ up to this command
  };
  [[nodiscard]] static bool is_before(const command& c, std::uint64_t value) noexcept { return c.value < value; }
  /// The memory on one side of a copy.
  enum class side : std::uint8_t { host, device };

  /// Creates the driver's stream, unless it exists; the device's context must be current, and the caller holds queue_.
  /// Streams of a device without a context are created for their first command.
  void make();
  [[nodiscard]] side check_range(const void* address, std::size_t bytes, const char* role) const;
  /// A copy whose sides were checked.
  struct checked_copy {
    std::uintptr_t to = 0, from = 0;
    side to_side = side::host, from_side = side::host;
    [[nodiscard]] checked_copy at(std::size_t offset) const noexcept {
      return {to + offset, from + offset, to_side, from_side};
    }
  };
  [[nodiscard]] checked_copy check_copy(void* destination, const void* source, std::size_t bytes) const;
  /// Like submit(), for a command that uses pinned host memory: calls queue(commands, uses), which adds these uses.
  /// They end with the command.
  template <class Queue>
  timepoint submit_with_host_memory(const observed_command& what, const Queue& queue);
  /// Returns how many of the bytes one command of the driver may copy.
  [[nodiscard]] std::size_t bytes_of_command(const checked_copy& what, std::size_t bytes,
                                             std::vector<cuda_pinned_memory::pinned_use>& uses);
  void queue_bytes(const checked_copy& what, std::size_t bytes, std::size_t& commands,
                   std::vector<cuda_pinned_memory::pinned_use>& uses);

  /// Queues one command and returns its timepoint. `queue(commands)` calls the driver, and counts in `commands` the
  /// commands that the driver has accepted. If `queue` throws and the driver has accepted no command, rethrows the
  /// exception.
  template <class Queue>
  timepoint submit(const observed_command& what, const Queue& queue);
  /// Adds a command to pending_; the caller holds queue_. Returns the event that will follow the command.
  [[nodiscard]] CUevent announce(std::uint32_t kernel);
  /// Removes a command that was not queued from pending_.
  void withdraw(CUevent done) noexcept;
  /// Records the event after a command that was queued in full or in part, and returns the command's timepoint.
  timepoint queued(CUevent done, const std::optional<error>& failure);
  /// Records the event after the last command of pending_, which ends on `end`; the caller holds queue_. If this is not
  /// possible, waits for the work on both streams. Returns whether the event is recorded.
  bool record(CUevent done, CUstream end) noexcept;
  /// Completes the entry of the last command in pending_, after record(); the caller holds pending_mutex_.
  void settle(CUevent done, bool followed) noexcept;
  /// Whether the work of the open command has ended, as far as the caller knows.
  enum class progress : std::uint8_t {
    unknown,
    perhaps_done,  ///< then close() asks the driver before it records the event
    done           ///< the command needs no event
  };
  /// Ends the open command, if there is one; the caller holds queue_.
  void close(progress of_work = progress::unknown) noexcept;
  /// To be called when a thread has queued work that is part of the open command; the caller holds queue_.
  void note_thread() noexcept {
    if (open_by_ != std::this_thread::get_id()) open_by_ = {};
  }
  /// Waits until no work of this stream runs. If the driver reports an error, marks the device as lost.
  void drain() noexcept;
  void check(CUresult result, const char* what);

  cuda_set& set_;
  cuda_device& device_;
  const driver& cu_;
  const std::uint32_t number_;
  const priority level_;
  CUstream stream_ = nullptr;  // guarded by queue_

  std::mutex queue_;  // held while a command is queued, for a long time if the driver's queue is full
  std::atomic<std::uint64_t> submitted_{0};
  std::atomic<std::uint64_t> entries_{0};  // the entries in a hardware queue that all commands so far have needed
  // The members below are guarded by queue_.
  CUstream end_ = nullptr;                   // if not null: the stream on which the command being queued ends
  openness openness_ = openness::none;       // how long that command may stay open
  std::atomic<std::uint64_t> open_{0};       // the number of the open command; 0: none. May be read without queue_.
  std::atomic<bool> ends_elsewhere_{false};  // may be read without queue_
  std::atomic<bool> lasts_{false};    // whether all work of the open command is lasting. May be read without queue_.
  std::atomic<bool> divided_{false};  // whether divide() has left the open command open. May be changed without queue_.
  unsigned joined_ = 0;               // the pieces of work that have joined the open command
  std::thread::id open_by_;           // the thread that has queued all work of the open command; none if several have
  CUstream open_end_ = nullptr;       // the stream on which the open command ends
  CUevent open_done_ = nullptr;       // the event that will follow the open command

  mutable std::mutex pending_mutex_;  // held only for a short time; guards the members below
  std::uint32_t lost_kernel_ = 0;     // 1 + the number of the kernel that lost_kernel() names; 0: none
  std::deque<command> pending_;
  std::vector<CUevent> unused_;  // events for reuse; has capacity for all events of the stream
  std::size_t events_made_ = 0;
  // The errors of failed commands, by number, oldest first; has capacity for kept_failures.
  std::vector<std::pair<std::uint64_t, error>> failures_;
  std::chrono::steady_clock::time_point asked_{};  // when a command was last seen unfinished
  std::atomic<std::uint64_t> completed_{0};
  std::atomic<std::uint64_t> completed_entries_{0};  // the entries of the commands up to completed_
  std::atomic<std::uint64_t> lost_after_{all};
};

}  // namespace hpe::device::cuda
