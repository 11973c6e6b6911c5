#pragma once

#include <mutex>
#include <set>

#include "runtime/device/device.h"
#include "runtime/device/soft/fabric.h"

namespace hpe::device::soft {

class soft_device;
class soft_set;

/// The producing end of one command ring. When the ring is full, queuing waits for room.
class soft_stream final : public stream {
 public:
  soft_stream(soft_set& set, soft_device& device, unsigned index);

  timepoint copy(void* destination, const void* source, std::size_t bytes) override;
  timepoint fill(void* destination, std::uint8_t value, std::size_t bytes) override;
  timepoint launch(kernel_id kernel, const shape& shape, std::span<const std::byte> parameters) override;
  timepoint enqueue(const std::function<int(void*)>& function) override;
  void wait(timepoint point) override;
  [[nodiscard]] timepoint last() const override;

  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
  /// Whether the command was queued or ran when the device was lost.
  [[nodiscard]] bool is_lost(std::uint64_t value) const noexcept { return value > block_.line.lost_after.load(); }

  // For taking failures, under the set's lock: the next one's place in the order of all, no_failure if there is none.
  [[nodiscard]] std::uint64_t oldest_failure();
  [[nodiscard]] error take_oldest_failure();
  /// The failure of a command was told.
  void leave_out_failure(std::uint64_t value);

 private:
  enum class side : bool { host, device };

  timepoint submit(const command& what, std::span<const std::byte> parameters = {});
  side check(const void* address, std::size_t bytes, const char* role) const;

  soft_set& set_;
  soft_device& device_;
  stream_block& block_;
  std::uint32_t number_;
  std::mutex mutex_;
  std::uint64_t failures_taken_ = 0;
  std::set<std::uint64_t> left_out_;  // values of failures behind failures_taken_ that were told already
};

}  // namespace hpe::device::soft
