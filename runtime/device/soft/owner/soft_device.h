#pragma once

#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

#include "runtime/base/options.h"
#include "runtime/base/thread_safety.h"
#include "runtime/device/capacity.h"
#include "runtime/device/device.h"
#include "runtime/device/soft/owner/soft_stream.h"
#include "runtime/device/soft/owner/spawn.h"

namespace hpe::device::soft {

class soft_set;

inline constexpr std::uint64_t no_failure = std::numeric_limits<std::uint64_t>::max();

/// One device process, as the owner (the process that runs the program) uses it.
class soft_device final : public device {
 public:
  soft_device(soft_set& set, unsigned index, softd_process& process, const options& wanted, int numa_node);

  [[nodiscard]] const properties& info() const noexcept override { return properties_; }
  [[nodiscard]] memory_usage memory() const override;
  [[nodiscard]] node::device_share* share() const noexcept override { return memory_.share(); }
  [[nodiscard]] bool lost() const noexcept override { return lost_.load(); }
  using device::map;
  void map(void* address, std::size_t bytes, contents first, backing_kind where) override;
  void unmap(void* address, std::size_t bytes) noexcept override;
  std::unique_ptr<group_of_moves> begin_moves() override;
  [[nodiscard]] bool withhold(std::size_t bytes) noexcept override { return memory_.try_take(bytes); }
  void restore(std::size_t bytes) noexcept override { memory_.give(bytes); }
  [[nodiscard]] bool can_access(unsigned peer) const noexcept override;
  stream& create_stream(priority level) override;
  std::unique_ptr<recorded_work> record(const std::function<int(void*)>& /*function*/) override {
    refuse_work_of_program();
  }
  void await_room(const stream* next) override;

  [[nodiscard]] unsigned index() const noexcept { return index_; }

  /// Called by the device's streams: adds `more` to the number of streams with a long queue
  /// (soft_stream::end_of_crowd).
  void count_crowds(int more) noexcept { crowds_ += more; }

  /// Throws HPE_ERROR_DEVICE_LOST if the device is lost.
  void require_alive() const;
  /// Throws HPE_ERROR_NOT_SUPPORTED because the program itself cannot queue work on soft devices.
  [[noreturn]] void refuse_work_of_program() const;
  /// Returns the error that every use of a lost device throws.
  [[nodiscard]] error loss() const;

  /// Kills the device's process. `reason`: why, in words that follow "device N is lost: " in the error message.
  void condemn(const std::string& reason);
  /// Calls condemn() if a command of one of the device's streams has run for longer than `limit`.
  void look_for_hanging(std::chrono::steady_clock::time_point now, std::chrono::seconds limit);

  /// Marks the device as lost: the timepoints of all queued commands then count as reached. The monitor calls this
  /// once, when the device's process has ended or can no longer be reached. `how`: how the process ended.
  void lose(std::string_view how);
  /// After this call, the end of the device's process does not count as a failure.
  void expect_end() noexcept { ending_ = true; }

  // Callers of the next three functions must hold the set's mutex failures_.
  [[nodiscard]] std::uint64_t oldest_failure();
  [[nodiscard]] error take_oldest_failure();
  /// Makes take_oldest_failure() skip the failure of this command, or the loss of the device, because it was reported
  /// to the program already.
  void leave_out_failure(timepoint point);

  /// Describes a copy, a fill or a launch, for messages.
  [[nodiscard]] std::string words_for(const command& what) const;
  /// See device_set::work_before.
  [[nodiscard]] std::string work_before(timepoint point) const;
  /// Like words_for(), for a command that runs on this device. If blocks of the kernel run for a long time and the
  /// device has no room for further blocks, the text also explains this, because the blocks may wait for each other.
  [[nodiscard]] std::string words_for_running(const command& what) const;
  /// Returns the command that the stream with this timeline runs or is about to run; nullopt if the stream is idle.
  [[nodiscard]] std::optional<command> current_of(std::uint32_t timeline) const;

 private:
  class soft_moves;

  [[nodiscard]] std::string words_of_loss(std::string_view how);
  [[nodiscard]] soft_stream* stream_with_oldest_failure() HPE_REQUIRES(mutex_);

  soft_set& set_;
  unsigned index_;
  softd_process& process_;
  properties properties_;
  capacity memory_;
  std::atomic<int> crowds_{0};
  std::atomic<bool> ending_{false};

  std::atomic<bool> lost_{false};
  mutex reason_mutex_;
  std::string reason_ HPE_GUARDED_BY(reason_mutex_);  // why the device was condemned
  mutable mutex mutex_;                               // locked before the mutexes of streams
  std::string how_lost_ HPE_GUARDED_BY(mutex_);       // does not change once lost_ is set
  std::uint64_t loss_order_ HPE_GUARDED_BY(mutex_) = no_failure;
  std::vector<std::unique_ptr<soft_stream>> streams_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::device::soft
