#pragma once

/// The owner's side of the soft devices.

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/base/options.h"
#include "runtime/device/device.h"
#include "runtime/device/soft/address_table.h"
#include "runtime/device/soft/control.h"
#include "runtime/device/soft/fabric.h"
#include "runtime/device/soft/monitor.h"
#include "runtime/device/soft/output.h"

namespace hpe::device::soft {

class soft_device;

/// Starts the devices. Throws HPE_ERROR_INITIALIZATION.
std::unique_ptr<device_set> open(const topology& shape, const uvas_layout& layout, const options& wanted);

class soft_set final : public device_set {
 public:
  soft_set(const topology& shape, const uvas_layout& layout, const options& wanted);
  ~soft_set() override;

  [[nodiscard]] unsigned size() const noexcept override { return static_cast<unsigned>(devices_.size()); }
  [[nodiscard]] device& at(unsigned index) override;
  void register_host(void* address, std::size_t bytes, int fd, std::int64_t offset) override;
  void unregister_host(void* address, std::size_t bytes) override;
  void expect_copies(const void* /*address*/, std::size_t /*bytes*/) override {}
  void release_host(void* /*address*/, std::size_t /*bytes*/) override {}  // a mapped file changes its pages itself
  std::vector<shared_part> share(void* address, std::size_t bytes) override;
  std::uint32_t import_memory(void* address, std::span<const shared_part> parts) override;
  void drop_import(void* address, std::size_t bytes) override;
  std::uint32_t load_module(const std::string& path) override;
  std::unique_ptr<ptx_module> load_ptx(std::vector<std::string> texts) override;
  kernel_id find_kernel(std::uint32_t module, const std::string& name) override;
  [[nodiscard]] bool reached(timepoint point) const noexcept override;
  bool wait(timepoint point, std::chrono::steady_clock::time_point deadline) override;
  [[nodiscard]] std::optional<error> status_of(timepoint point) const override;
  std::optional<command_failure> take_failure_of(timepoint point) override;
  std::vector<printed> take_output() override { return output_.take(); }
  std::optional<error> take_failure(int device) override;
  std::unique_ptr<gate> create_gate() override;

  // For its devices and streams:

  [[nodiscard]] fabric& shared() noexcept { return fabric_; }
  [[nodiscard]] fabric_state& state() const noexcept { return fabric_.state(); }
  [[nodiscard]] address_table& addresses() noexcept { return addresses_; }
  [[nodiscard]] int memory_file(unsigned device) const noexcept { return memory_files_[device].get(); }

  [[nodiscard]] std::uint32_t next_module();
  [[nodiscard]] std::uint64_t next_launch() noexcept { return launches_.fetch_add(1) + 1; }

  /// Asks all devices for which wanted(index) holds and which are not lost, and waits for their replies. Throws the
  /// first error that one replies, after `undo` was asked of those that had agreed. A device that dies meanwhile counts
  /// as having agreed: its memory and kernels are gone anyway. False if nobody is left to be asked.
  bool ask(const std::function<bool(unsigned)>& wanted, const request& what, std::span<const int> descriptors = {},
           const request* undo = nullptr);

 private:
  void configure(const uvas_layout& layout, const options& wanted);
  void start(const options& wanted);
  void quit() noexcept;
  /// Has all devices take away memory that is not their own, and takes it out of the table.
  void forget(request::kind how, void* address, std::size_t bytes, int location);
  [[nodiscard]] soft_device& device_of(timepoint point) const;

  pid_t owner_;
  fabric fabric_;
  output_reader output_;
  address_table addresses_;
  std::vector<os::file_descriptor> memory_files_;  // by device; the offset of a byte is its place in the UVAS
  std::vector<std::unique_ptr<softd_process>> processes_;
  std::vector<std::unique_ptr<soft_device>> devices_;
  std::mutex asking_;                      // one conversation at a time
  std::mutex failures_;                    // taking failures
  std::atomic<std::uint64_t> free_gates_;  // shared with the gates
  std::atomic<std::uint64_t> launches_{0};
  std::uint32_t modules_ = 0;  // under asking_, as functions_
  std::uint32_t functions_ = 0;
  std::unique_ptr<monitor> monitor_;
};

}  // namespace hpe::device::soft
