#pragma once

#include <atomic>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/options.h"
#include "runtime/device/capacity.h"
#include "runtime/device/cuda/device_memory.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/device/cuda/work_recorder.h"
#include "runtime/device/device.h"
#include "runtime/os/numa.h"

namespace hpe::device::cuda {

class cuda_set;
class cuda_stream;

/// The number of a device, and what has failed there.
using device_failure = std::pair<unsigned, error>;

/// One GPU, used through its primary context, which the program's own CUDA runtime uses as well. hpe makes the context
/// at the first use of the GPU, because the driver needs about 0.1 s for each context.
class cuda_device final : public device {
 public:
  /// `ordinal`: the driver's number of the GPU. `wanted` limits the device memory that hpe uses, and says whether
  /// processes share the GPU. If `starts_later` is true, the first use of the GPU makes its context. Throws
  /// HPE_ERROR_INITIALIZATION if the GPU cannot be used or lacks a feature that hpe needs.
  cuda_device(cuda_set& set, unsigned index, CUdevice ordinal, const options& wanted, bool starts_later);
  ~cuda_device() override;

  [[nodiscard]] const properties& info() const noexcept override { return properties_; }
  [[nodiscard]] memory_usage memory() const override;
  void start() override { static_cast<void>(context()); }
  [[nodiscard]] node::device_share* share() const noexcept override { return memory_->share(); }
  [[nodiscard]] bool lost() const noexcept override { return lost_.load(); }
  using device::map;
  void map(void* address, std::size_t bytes, contents first, backing_kind where) override;
  void unmap(void* address, std::size_t bytes) noexcept override;
  std::unique_ptr<group_of_moves> begin_moves() override;
  [[nodiscard]] bool has_standby(const void* address) const override;
  void drop_standby() noexcept override;
  [[nodiscard]] bool withhold(std::size_t bytes) noexcept override;
  void restore(std::size_t bytes) noexcept override { memory_->give(bytes); }
  [[nodiscard]] bool can_access(unsigned peer) const noexcept override;
  [[nodiscard]] bool has_atomics(unsigned peer) const noexcept override;
  stream& create_stream(priority level) override;
  std::unique_ptr<recorded_work> record(const std::function<int(void*)>& function) override {
    return recorder_.record(function);
  }
  void await_room(const stream* next) override;

  // For the GPU's cuda_set and cuda_streams:

  [[nodiscard]] unsigned index() const noexcept { return index_; }
  [[nodiscard]] CUdevice ordinal() const noexcept { return ordinal_; }
  /// Returns the context, which the first call makes.
  [[nodiscard]] CUcontext context() const {
    CUcontext const made = context_if_started();
    return made != nullptr ? made : make_context();
  }
  /// Returns the context; null before the first use of the GPU.
  [[nodiscard]] CUcontext context_if_started() const noexcept { return context_.load(std::memory_order_acquire); }
  void find_peers();
  void find_node(const os::numa& machine);

  /// Marks the device as lost after an error that makes its context unusable. If memory is short, the message does not
  /// name the reason.
  void lose(CUresult why) noexcept;
  /// Asks the driver whether the context is usable, and marks the device as lost if it is not.
  void look() noexcept;
  /// Throws HPE_ERROR_DEVICE_LOST if the device is lost.
  void require_alive() const;
  [[nodiscard]] error loss() const;

 private:
  class cuda_moves;

  void require_abilities() const;
  /// The GPUs that can access memory of this GPU.
  [[nodiscard]] std::vector<device_memory::user> users() const;
  CUcontext make_context() const;
  /// A place for new memory, after capacity::take has counted the memory.
  [[nodiscard]] device_memory::place place_for(backing_kind where) const;
  /// What happens with device memory that a range no longer uses.
  [[nodiscard]] device_memory::after after_unmap() const noexcept;
  /// Returns a name of the GPU that is the same in all processes.
  [[nodiscard]] std::string identity() const;
  [[nodiscard]] int attribute(CUdevice_attribute which) const;
  void check(CUresult result, const char* what);
  /// Returns the message about the loss of the device. Call it with mutex_ locked, after the streams are lost.
  [[nodiscard]] std::string words_for_loss(CUresult why) const;

  cuda_set& set_;
  const driver& cu_;
  const unsigned index_;
  const CUdevice ordinal_;
  std::optional<capacity> memory_;  // set by the constructor
  mutable std::mutex starting_;
  mutable std::atomic<CUcontext> context_{nullptr};
  mutable CUstream clearing_ = nullptr;  // set before context_
  mutable CUstream leaving_ = nullptr;   // for moves to zero-copy memory; set before context_
  work_recorder recorder_;
  properties properties_;
  std::vector<bool> peers_;    // by index
  std::vector<bool> atomics_;  // by index

  mutable std::mutex mutex_;  // guards the members below
  // The constructor makes the error and the report, because host memory may be short when the device is lost.
  error loss_{HPE_ERROR_DEVICE_LOST, ""};
  std::list<device_failure> report_of_loss_;  // moves to the set's failures when the device is lost
  std::vector<cuda_stream*> streams_;
  std::atomic<bool> lost_{false};
};

}  // namespace hpe::device::cuda
