#pragma once

/// The soft devices, as the owner uses them. The owner is the process that runs the program; each device is another
/// process (hpe-softd).

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/options.h"
#include "runtime/base/thread_safety.h"
#include "runtime/device/device.h"
#include "runtime/device/device_ptx_module.h"
#include "runtime/device/soft/owner/feeder.h"
#include "runtime/device/soft/owner/monitor.h"
#include "runtime/device/soft/shared/address_table.h"
#include "runtime/device/soft/shared/control.h"
#include "runtime/device/soft/shared/fabric.h"
#include "runtime/device/soft/shared/output.h"
#include "runtime/device/soft/shared/recorded_accesses.h"

namespace hpe::device::soft {

class soft_device;
class soft_stream;

/// Starts the device processes. Throws HPE_ERROR_INITIALIZATION if a device cannot be started; the message states the
/// reason.
std::unique_ptr<device_set> open(const topology& shape, const uvas_layout& layout, const options& wanted);

class soft_set final : public device_set, public ptx_capability {
 public:
  soft_set(const topology& shape, const uvas_layout& layout, const options& wanted);
  ~soft_set() override;

  [[nodiscard]] unsigned size() const noexcept override { return static_cast<unsigned>(devices_.size()); }
  [[nodiscard]] device& at(unsigned index) override;
  void register_host(void* address, std::size_t bytes, int fd, std::int64_t offset) override;
  void unregister_host(void* address, std::size_t bytes) noexcept override;
  void expect_copies(const void* /*address*/, std::size_t /*bytes*/) override {}
  void prepare_host(const void* /*address*/, std::size_t /*bytes*/) override {}
  [[nodiscard]] std::size_t prepared_host(const void* /*address*/, std::size_t /*bytes*/) const noexcept override {
    return 0;
  }
  void release_host(void* /*address*/, std::size_t /*bytes*/) noexcept override {
  }  // nothing to do: the devices' mappings of the file show its new pages
  std::vector<shared_part> share(void* address, std::size_t bytes) override;
  std::uint32_t import_memory(void* address, std::span<const shared_part> parts) override;
  void drop_import(void* address, std::size_t bytes) noexcept override;
  std::uint32_t load_module(const std::string& path) override;
  kernel_id find_kernel(std::uint32_t module, const std::string& name) override;
  [[nodiscard]] bool reached(timepoint point) const noexcept override {
    const timeline* line = fabric_.find_timeline(point.timeline);
    return line == nullptr || line->reached(point.value);
  }
  bool wait(timepoint point, std::chrono::steady_clock::time_point deadline) override;
  /// Returns the device of the stream to which the point belongs.
  [[nodiscard]] soft_device& device_of(timepoint point) const;
  [[nodiscard]] std::string work_before(timepoint point) const override;
  [[nodiscard]] std::optional<error> status_of(timepoint point) const override;
  std::optional<error> take_failure_of(timepoint point) override;
  std::optional<error> take_failure(int device) override;
  std::unique_ptr<gate> create_gate() override;

  [[nodiscard]] ptx_capability* ptx() noexcept override { return this; }
  std::unique_ptr<device_ptx_module> load(std::vector<std::string> texts, ptx_recording reads) override;
  std::vector<printed> take_output() override { return output_.take(); }
  bool take_accesses(unsigned device, function_ref<void(const recorded_stretch&)> visit) override;
  std::vector<recorded_race> take_races(unsigned device) override;
  [[nodiscard]] hpeFault fault_of(timepoint point) const override;

  // For the devices and streams of this set:

  [[nodiscard]] fabric& shared() noexcept { return fabric_; }
  [[nodiscard]] const fabric_configuration& configuration() const noexcept { return fabric_.configuration(); }
  [[nodiscard]] address_table& addresses() noexcept { return addresses_; }
  [[nodiscard]] int memory_file(unsigned device) const noexcept { return memory_files_[device].get(); }

  /// Makes the feeder's thread move the stream's waiting commands into the stream's ring when the ring has free slots.
  void feed(soft_stream& hungry) { feeder_->add(hungry); }
  [[nodiscard]] std::string name_of_function(std::uint32_t function) const;

  [[nodiscard]] std::uint32_t next_module();
  [[nodiscard]] std::uint64_t next_launch() noexcept { return launches_.fetch_add(1) + 1; }

  /// Sends a request to all devices for which wanted(index) is true and which are not lost, and waits for their
  /// replies. If a device replies with an error, or the request cannot be sent, sends `undo` to the devices that have
  /// carried out the request, and throws the first error. A device that dies during the call causes no error, because
  /// its memory and kernels cease to exist. Returns false if the request was sent to no device.
  bool ask(const std::function<bool(unsigned)>& wanted, const control_request& what,
           std::span<const int> descriptors = {}, const control_request* undo = nullptr);

 private:
  void configure(const uvas_layout& layout, const options& wanted);
  void start(const options& wanted);
  /// Sends a request that unmaps memory in a device. If the request cannot be sent, kills the device, which could
  /// otherwise continue to use the memory.
  bool send_in_any_case(unsigned device, const control_request& what) HPE_REQUIRES(asking_);
  // send and receive return false if the device's process has ended.
  bool send(unsigned device, control_request what, std::span<const int> descriptors) HPE_REQUIRES(asking_);
  bool receive(unsigned device, reply& answer) HPE_REQUIRES(asking_);
  void quit() noexcept;
  /// Makes all devices unmap registered host memory or imported memory, and removes it from addresses_. `location`:
  /// host_location or foreign_location.
  void forget(control_request::kind how, void* address, std::size_t bytes, int location);

  pid_t owner_;
  fabric fabric_;
  output_reader output_;
  std::unique_ptr<recorded_reader> recorded_;  // null: the devices do not record accesses
  address_table addresses_;
  std::vector<os::file_descriptor> memory_files_;  // by device; a byte has the same offset in the file and in the UVAS
  std::vector<std::unique_ptr<softd_process>> processes_;
  std::vector<std::unique_ptr<soft_device>> devices_;
  std::chrono::seconds timeout_;  // limit for one command or request; 0: no limit
  mutable mutex asking_;          // held while requests are sent and replies are received
  std::vector<std::uint32_t> requests_ HPE_GUARDED_BY(asking_);  // by device: the number of the last request
  mutex failures_;                         // held while take_failure() and take_failure_of() search and remove failures
  std::atomic<std::uint64_t> free_gates_;  // a bit mask of unused wait queues; soft_gate changes it, too
  std::atomic<std::uint64_t> launches_{0};
  std::uint32_t modules_ HPE_GUARDED_BY(asking_) = 0;
  mutable mutex names_mutex_;
  std::vector<std::string> functions_ HPE_GUARDED_BY(names_mutex_);  // the names of functions, by number
  std::unique_ptr<feeder> feeder_;
  std::unique_ptr<monitor> monitor_;
};

}  // namespace hpe::device::soft
