#pragma once

/// One CUDA stream. Its commands are numbered from 1; behind each lies an event, by whose queries the stream knows how
/// far it is.

#include <atomic>
#include <deque>
#include <limits>
#include <mutex>
#include <vector>

#include "runtime/device/cuda/driver.h"
#include "runtime/device/cuda/host_memory.h"
#include "runtime/device/device.h"

namespace hpe::device::cuda {

class cuda_set;
class cuda_device;

class cuda_stream final : public stream {
 public:
  static constexpr std::uint64_t all = std::numeric_limits<std::uint64_t>::max();

  /// number: its timeline.
  cuda_stream(cuda_set& set, cuda_device& device, std::uint32_t number, priority level);
  /// Its work is done, or its device is lost.
  ~cuda_stream() override;

  timepoint copy(void* destination, const void* source, std::size_t bytes) override;
  timepoint fill(void* destination, std::uint8_t value, std::size_t bytes) override;
  timepoint launch(kernel_id kernel, const shape& shape, std::span<const std::byte> parameters) override;
  timepoint enqueue(const std::function<int(void*)>& function) override;
  void wait(timepoint point) override;
  [[nodiscard]] timepoint last() const override;

  // For the set and its devices:

  [[nodiscard]] cuda_device& device() const noexcept { return device_; }
  /// One load if it is known already, else the query of an event.
  [[nodiscard]] bool reached(std::uint64_t value) noexcept;
  /// Never asks the driver: false may mean that nobody has looked yet.
  [[nodiscard]] bool known_reached(std::uint64_t value) const noexcept { return completed_.load() >= value; }
  /// What was done when the device was lost; all while it is not.
  [[nodiscard]] std::uint64_t lost_after() const noexcept { return lost_after_.load(); }
  /// Lets everything count as reached. Gives the name of the kernel that was next, or an empty one.
  std::string lose();
  /// Makes `follower` wait for a command of this stream.
  void hold(CUstream follower, std::uint64_t value);

 private:
  struct command {
    std::uint64_t value;
    CUevent done;
    std::uint32_t kernel;  // number of its function and 1; 0: no kernel
  };
  /// What one side of a copy is.
  enum class side : std::uint8_t { host, device };

  [[nodiscard]] side check_range(const void* address, std::size_t bytes, const char* role) const;
  [[nodiscard]] std::size_t queue_piece(std::uintptr_t to, side to_side, std::uintptr_t from, side from_side,
                                        std::size_t bytes, std::vector<host_memory::use>& uses);
  /// The caller has queued a command, under queue_, and hands it over.
  timepoint submitted(std::uint32_t kernel);
  void check(CUresult result, const char* what);
  [[nodiscard]] CUevent take_event();

  cuda_set& set_;
  cuda_device& device_;
  const driver& cu_;
  const std::uint32_t number_;
  CUstream stream_ = nullptr;

  std::mutex queue_;  // held while a command is queued, which may take long when the driver's queue is full
  std::atomic<std::uint64_t> submitted_{0};

  std::mutex pending_mutex_;  // held shortly
  std::deque<command> pending_;
  std::vector<CUevent> unused_;
  std::atomic<std::uint64_t> completed_{0};
  std::atomic<std::uint64_t> lost_after_{all};
};

}  // namespace hpe::device::cuda
