#pragma once

/// The GPUs that this process uses.

#include <array>
#include <atomic>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/base/options.h"
#include "runtime/base/thread_safety.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/cuda/cuda_pinned_memory.h"
#include "runtime/device/cuda/cuda_stream.h"
#include "runtime/device/cuda/device_memory.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/device/cuda/kernel_table.h"
#include "runtime/device/device.h"
#include "runtime/device/device_ptx_module.h"

namespace hpe::device::cuda {

class cuda_set final : public device_set, public ptx_capability {
 public:
  /// `wished`: the number of GPUs; if it is empty, the set uses all GPUs. Throws HPE_ERROR_INITIALIZATION if the
  /// machine has no GPU or too few GPUs, or if a GPU cannot be used.
  cuda_set(const driver& entries, std::optional<unsigned> wished, const uvas_layout& layout, const options& wanted);
  ~cuda_set() override;

  [[nodiscard]] unsigned size() const noexcept override { return static_cast<unsigned>(devices_.size()); }
  [[nodiscard]] device& at(unsigned index) override;
  void register_host(void* address, std::size_t bytes, int fd, std::int64_t offset) override;
  void unregister_host(void* address, std::size_t bytes) noexcept override;
  void expect_copies(const void* address, std::size_t bytes) override;
  void prepare_host(const void* address, std::size_t bytes) override;
  [[nodiscard]] std::size_t prepared_host(const void* address, std::size_t bytes) const noexcept override;
  void release_host(void* address, std::size_t bytes) noexcept override;
  std::vector<shared_part> share(void* address, std::size_t bytes) override;
  std::uint32_t import_memory(void* address, std::span<const shared_part> parts) override;
  void drop_import(void* address, std::size_t bytes) noexcept override;
  std::uint32_t load_module(const std::string& path) override;
  kernel_id find_kernel(std::uint32_t module, const std::string& name) override;
  [[nodiscard]] ptx_capability* ptx() noexcept override { return this; }
  std::unique_ptr<device_ptx_module> load(std::vector<std::string> texts, ptx_recording reads) override;
  /// Returns an empty list. If kernels of loaded modules may print, synchronises the contexts, which makes the driver
  /// print the kernels' output.
  std::vector<printed> take_output() override;
  [[nodiscard]] hpeFault fault_of(timepoint /*point*/) const override { return HPE_FAULT_NONE; }
  [[nodiscard]] bool reached(timepoint point) const noexcept override;
  bool wait(timepoint point, std::chrono::steady_clock::time_point deadline) override;
  [[nodiscard]] std::string work_before(timepoint point) const override;
  [[nodiscard]] std::optional<error> status_of(timepoint point) const override;
  std::optional<error> take_failure_of(timepoint point) override;
  std::optional<error> take_failure(int device) override;
  std::unique_ptr<gate> create_gate() override;

  // For the devices and streams of this set:

  [[nodiscard]] const driver& driver_table() const noexcept { return cu_; }
  [[nodiscard]] const uvas_layout& layout() const noexcept { return layout_; }
  [[nodiscard]] device_memory& memory() noexcept { return *memory_; }
  [[nodiscard]] cuda_pinned_memory& host() noexcept { return *host_; }
  /// Loads texts of PTX and links them, on all devices that are not lost. Returns the module's number in the kernel
  /// table.
  std::uint32_t load_ptx(std::span<const std::string> texts);
  /// The kernel of fingerprints on one device, and the address of its sums. The first call for a device loads the code;
  /// throws if it cannot be loaded.
  struct fingerprint_code {
    std::once_flag loads;
    kernel_id kernel;
    CUdeviceptr sums = 0;
  };
  [[nodiscard]] const fingerprint_code& code_of_fingerprints(unsigned device);
  [[nodiscard]] kernel_table& kernels() noexcept { return *kernels_; }
  [[nodiscard]] cuda_device& gpu(unsigned index) const { return *devices_[index]; }
  [[nodiscard]] bool peers_allowed() const noexcept { return peers_allowed_; }
  cuda_stream& add_stream(cuda_device& device, priority level);
  /// Returns the stream to which the point belongs; nullptr if it belongs to no stream of this set.
  [[nodiscard]] cuda_stream* find_stream(timepoint point) const noexcept;
  void failed(unsigned device, const error& what);
  /// Moves the failures to those of the set, without allocating memory.
  void failed(std::list<device_failure>& what) noexcept;

 private:
  static constexpr std::size_t most_streams = 1024;

  [[nodiscard]] std::vector<bool> alive() const;
  /// Returns the context of a device that is not lost. If all devices are lost, returns the context of the first
  /// device.
  [[nodiscard]] CUcontext live_context() const noexcept;

  const driver cu_;
  const uvas_layout layout_;
  bool peers_allowed_ = true;
  std::vector<std::unique_ptr<cuda_device>> devices_;
  std::unique_ptr<device_memory> memory_;
  std::unique_ptr<cuda_pinned_memory> host_;
  std::unique_ptr<kernel_table> kernels_;
  std::deque<fingerprint_code> fingerprints_;  // by device; a deque, because the flags cannot be moved
  std::atomic<bool> prints_{false};            // a loaded module of PTX contains kernels that may print

  mutex streams_mutex_;
  std::vector<std::unique_ptr<cuda_stream>> streams_ HPE_GUARDED_BY(streams_mutex_);
  std::array<std::atomic<cuda_stream*>, most_streams> by_timeline_{};  // the streams by number; element 0 is unused

  mutex failures_mutex_;
  std::list<device_failure> failures_ HPE_GUARDED_BY(failures_mutex_);
};

}  // namespace hpe::device::cuda
