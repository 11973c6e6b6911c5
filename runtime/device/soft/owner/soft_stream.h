#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/device/observer.h"
#include "runtime/device/soft/shared/fabric.h"

namespace hpe::device::soft {

class soft_device;
class soft_set;

/// A stream of a soft device. The owner (the process that runs the program) writes commands into a ring in shared
/// memory, from which the device process reads them. If the ring is full, further commands wait in a queue in the
/// owner, in order.
class soft_stream final : public stream {
 public:
  soft_stream(soft_set& set, soft_device& device, unsigned index);

  timepoint copy(void* destination, const void* source, std::size_t bytes) override {
    return copy_rows(destination, source, {{bytes}, {}});
  }
  timepoint copy_rows(void* destination, const void* source, const box& rows) override;
  timepoint fill(void* destination, std::uint8_t value, std::size_t bytes) override;
  timepoint take_fingerprint(fingerprint* result, const void* source, std::size_t bytes) override;
  timepoint launch(kernel_id kernel, const shape& shape, std::span<const std::byte> parameters) override;
  timepoint enqueue(const std::function<int(void*)>& function) override;
  void wait(timepoint point) override;
  [[nodiscard]] timepoint last() const override;

  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
  /// Whether the command was queued or running when the device was lost.
  [[nodiscard]] bool is_lost(std::uint64_t value) const noexcept { return value > line_.lost_after.load(); }

  /// If the queue of waiting commands is long (look_at_crowd), returns the point after which at most long_queue / 2 of
  /// the commands wait; otherwise none().
  [[nodiscard]] timepoint end_of_crowd() const;

  // For the feeder:

  /// Moves waiting commands into the free slots of the ring. Returns true if no command waits after that.
  bool feed();
  /// Returns the point at which half of the ring is free.
  [[nodiscard]] timepoint point_of_room() const;

  /// Marks the stream as lost with its device: the timepoints of all commands then count as reached.
  void lose();

  /// Returns a description of the stream's current command if the command has run for longer than `limit`, in words
  /// that follow "device N is lost: ". The time counts from the first call of this function that found the command
  /// running. Returns nullopt if the command has not run for this long, if the stream is idle, or if the stream waits
  /// for another stream. Only one thread may call this function.
  [[nodiscard]] std::optional<std::string> overdue(std::chrono::steady_clock::time_point now,
                                                   std::chrono::seconds limit);

  /// Returns the first command that has not ended; nullopt if the stream is idle.
  [[nodiscard]] std::optional<command> current() const;

  // Callers of the next three functions must hold the set's mutex failures_. oldest_failure returns the position, among
  // the failures of all streams, of this stream's oldest failure that was not reported; no_failure if there is none.
  [[nodiscard]] std::uint64_t oldest_failure();
  [[nodiscard]] error take_oldest_failure();
  /// Makes take_oldest_failure() skip the failure of command number `value`, because it was reported to the program
  /// already.
  void leave_out_failure(std::uint64_t value);

 private:
  enum class side : bool { host, device };
  static constexpr std::size_t long_queue = 4096;
  struct waiting_command {
    command what;
    std::vector<std::byte> parameters;
  };

  timepoint submit(const command& what, std::span<const std::byte> parameters = {});
  /// Reports a queued command to the observer.
  void tell(command_observer& to, const command& what, timepoint point,
            std::chrono::steady_clock::time_point asked) const;
  side check(const void* address, std::size_t bytes, const char* role) const;

  [[nodiscard]] std::uint64_t completed() const noexcept HPE_REQUIRES(mutex_);
  [[nodiscard]] bool has_room() const noexcept HPE_REQUIRES(mutex_) { return in_ring_ - completed() < ring_slots; }
  void put(const command& what, std::span<const std::byte> parameters) HPE_REQUIRES(mutex_);
  bool feed_locked() HPE_REQUIRES(mutex_);
  /// Calls soft_device::count_crowds when the queue of waiting commands becomes long or short: long means more than
  /// long_queue commands, short means at most half as many.
  void look_at_crowd() HPE_REQUIRES(mutex_);

  [[nodiscard]] std::uint64_t failures() const noexcept;

  soft_set& set_;
  soft_device& device_;
  timeline& line_;
  command_ring& ring_;
  std::uint32_t number_;
  std::atomic<std::uint64_t> issued_{0};  // the number of the last command
  mutable mutex mutex_;
  std::uint64_t in_ring_ HPE_GUARDED_BY(mutex_) = 0;  // the number of the last command in the ring
  std::deque<waiting_command> waiting_ HPE_GUARDED_BY(mutex_);
  // Becomes true when more than long_queue commands wait, and false when at most half as many wait.
  bool crowded_ HPE_GUARDED_BY(mutex_) = false;

  // The next two members are used only by overdue().
  std::uint64_t seen_completed_ = timeline::all;  // timeline::all before the first call of overdue()
  std::chrono::steady_clock::time_point seen_at_{};

  // The next two members are guarded by the set's mutex failures_.
  std::uint64_t failures_taken_ = 0;
  // The numbers of the commands that were passed to leave_out_failure() and whose failures come after failures_taken_.
  std::set<std::uint64_t> left_out_;
};

}  // namespace hpe::device::soft
