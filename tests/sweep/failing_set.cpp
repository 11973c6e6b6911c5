#include "tests/sweep/failing_set.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/device/device.h"
#include "runtime/device/device_ptx_module.h"
#include "tests/sweep/injection.h"
#include "tests/sweep/resources.h"

using hpe::timepoint;

namespace sweep {

namespace {

namespace device = hpe::device;

struct {
  std::mutex mutex;
  accepted_work work;
  device_write late;
  std::shared_mutex choosing;  // held while a thread chooses the command that fails late
  int killed = -1;
  // The commands that failed late (timeline and value), and whether the runtime has fetched the failure.
  std::map<std::pair<std::uint32_t, std::uint64_t>, bool> failed;
} record;

[[noreturn]] void refuse(hpeStatus status, const char* what) {
  const test_code here;
  HPE_THROW(status, "{} was refused {}", what, mark);
}

hpe::error late_failure() {
  const test_code here;
  return {HPE_ERROR_LAUNCH_FAILED, std::string("a command failed late ") + mark};
}

void kill_device(device::device& lost, unsigned index, bool until_known) {
  const test_code here;
  const auto processes = device_processes(::getpid());
  if (!processes.contains(static_cast<int>(index))) return;
  ::kill(processes.at(static_cast<int>(index)), SIGKILL);
  {
    const std::lock_guard lock(record.mutex);
    record.killed = static_cast<int>(index);
  }
  while (until_known && !lost.lost()) std::this_thread::yield();
}

// Performs one operation of a device or of a whole set, or makes it fail.
template <class Operation>
auto perform(const char* what, hpeStatus refusal, Operation operation) {
  if (injected().due(failure::refusal, what)) refuse(refusal, what);
  return operation();
}

// Performs one operation of a device; the device may die before or after the operation.
template <class Operation>
auto perform_on(device::device& on, unsigned index, const char* what, hpeStatus refusal, Operation operation) {
  if (injected().due(failure::refusal, what, static_cast<int>(index))) refuse(refusal, what);
  if (injected().due(failure::loss_before, what, static_cast<int>(index))) kill_device(on, index, true);
  if constexpr (std::is_void_v<decltype(operation())>) {
    operation();
    if (injected().due(failure::loss_after, what, static_cast<int>(index))) kill_device(on, index, false);
  } else {
    decltype(auto) result = operation();
    if (injected().due(failure::loss_after, what, static_cast<int>(index))) kill_device(on, index, false);
    return static_cast<decltype(operation())>(result);
  }
}

class failing_stream final : public device::stream {
 public:
  failing_stream(device::stream& real, device::device& owner, unsigned index)
      : real_(real), owner_(owner), index_(index) {}

  timepoint copy(void* destination, const void* source, std::size_t bytes) override {
    return queue("copy", {index_, std::uintptr_t(destination), std::uintptr_t(destination) + bytes},
                 [&] { return real_.copy(destination, source, bytes); });
  }
  timepoint copy_rows(void* destination, const void* source, const hpe::box& rows) override {
    return queue("copy", {index_, std::uintptr_t(destination), std::uintptr_t(destination) + rows.span()},
                 [&] { return real_.copy_rows(destination, source, rows); });
  }
  timepoint fill(void* destination, std::uint8_t value, std::size_t bytes) override {
    return queue("fill", {index_, std::uintptr_t(destination), std::uintptr_t(destination) + bytes},
                 [&] { return real_.fill(destination, value, bytes); });
  }
  timepoint launch(device::kernel_id kernel, const device::shape& shape, std::span<const std::byte> p) override {
    return queue("launch", {index_, 0, 0}, [&] { return real_.launch(kernel, shape, p); });
  }
  timepoint take_fingerprint(device::fingerprint* result, const void* source, std::size_t bytes) override {
    return perform_on(owner_, index_, "fingerprint", HPE_ERROR_SYSTEM,
                      [&] { return real_.take_fingerprint(result, source, bytes); });
  }
  timepoint enqueue(const std::function<int(void*)>& function) override {
    return perform_on(owner_, index_, "enqueue", HPE_ERROR_SYSTEM, [&] { return real_.enqueue(function); });
  }
  void wait(timepoint point) override {
    perform_on(owner_, index_, "stream.wait", HPE_ERROR_SYSTEM, [&] { real_.wait(point); });
  }
  [[nodiscard]] timepoint last() const override { return real_.last(); }

 private:
  template <class Command>
  timepoint queue(const char* what, const device_write& writes, Command command) {
    return perform_on(owner_, index_, what, HPE_ERROR_SYSTEM, [&] {
      {
        const std::shared_lock choosing(record.choosing);
        if (injected().due(failure::late, what, static_cast<int>(index_))) return fail_late(writes);
      }
      const timepoint point = command();
      const test_code here;
      const std::lock_guard lock(record.mutex);
      if (writes.begin == 0)
        record.work.launches.push_back(index_);
      else
        record.work.writes.push_back(writes);
      return point;
    });
  }

  // Queues an empty command in place of the given command, and records the command as failed.
  timepoint fail_late(const device_write& writes) {
    const timepoint point = real_.fill(nullptr, 0, 0);
    const test_code here;
    const std::lock_guard lock(record.mutex);
    record.late = writes;
    record.failed[{point.timeline, point.value}] = false;
    return point;
  }

  device::stream& real_;
  device::device& owner_;
  const unsigned index_;
};

class failing_moves final : public device::group_of_moves {
 public:
  failing_moves(device::device& of, unsigned index) : of_(of), index_(index), real_(of.begin_moves()) {}

  void add(void* address, std::size_t bytes, device::backing_kind to, bool on_standby) override {
    perform_on(of_, index_, "begin_move", HPE_ERROR_OUT_OF_MEMORY, [&] { real_->add(address, bytes, to, on_standby); });
  }
  void wait() override { real_->wait(); }
  std::vector<std::optional<hpe::error>> finish() override { return real_->finish(); }

 private:
  device::device& of_;
  const unsigned index_;
  const std::unique_ptr<device::group_of_moves> real_;
};

class failing_device final : public device::device {
 public:
  failing_device(hpe::device::device& real, unsigned index) : real_(real), index_(index) {}

  [[nodiscard]] const hpe::device::properties& info() const noexcept override { return real_.info(); }
  [[nodiscard]] hpe::device::memory_usage memory() const override { return real_.memory(); }
  [[nodiscard]] bool lost() const noexcept override { return real_.lost(); }
  void map(void* address, std::size_t bytes, hpe::device::contents first, hpe::device::backing_kind where) override {
    perform_on(real_, index_, "map", HPE_ERROR_OUT_OF_MEMORY, [&] { real_.map(address, bytes, first, where); });
  }
  void unmap(void* address, std::size_t bytes) noexcept override { real_.unmap(address, bytes); }
  std::unique_ptr<hpe::device::group_of_moves> begin_moves() override {
    return std::make_unique<failing_moves>(real_, index_);
  }
  [[nodiscard]] bool has_standby(const void* address) const override { return real_.has_standby(address); }
  void drop_standby() noexcept override { real_.drop_standby(); }
  [[nodiscard]] bool withhold(std::size_t bytes) noexcept override { return real_.withhold(bytes); }
  void restore(std::size_t bytes) noexcept override { real_.restore(bytes); }
  [[nodiscard]] bool can_access(unsigned peer) const noexcept override { return real_.can_access(peer); }
  void await_room(const hpe::device::stream* /*next*/) override { real_.await_room(nullptr); }
  std::unique_ptr<hpe::device::recorded_work> record(const std::function<int(void*)>& function) override {
    return real_.record(function);
  }
  hpe::device::stream& create_stream(hpe::device::priority level) override {
    hpe::device::stream* made = nullptr;
    perform_on(real_, index_, "create_stream", HPE_ERROR_SYSTEM, [&] { made = &real_.create_stream(level); });
    const test_code here;
    const std::lock_guard lock(mutex_);
    return *streams_.emplace_back(std::make_unique<failing_stream>(*made, real_, index_));
  }

 private:
  hpe::device::device& real_;
  const unsigned index_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<failing_stream>> streams_;
};

class failing_ptx final : public device::ptx_capability {
 public:
  explicit failing_ptx(device::ptx_capability& real) : real_(real) {}

  std::unique_ptr<device::device_ptx_module> load(std::vector<std::string> texts,
                                                  device::ptx_recording reads) override {
    return perform("ptx.load", HPE_ERROR_OUT_OF_MEMORY, [&] { return real_.load(std::move(texts), reads); });
  }
  std::vector<device::printed> take_output() override { return real_.take_output(); }
  [[nodiscard]] hpeFault fault_of(timepoint point) const override { return real_.fault_of(point); }

 private:
  device::ptx_capability& real_;
};

class failing_set final : public device::device_set {
 public:
  explicit failing_set(std::unique_ptr<device::device_set> real) : real_(std::move(real)) {
    for (unsigned d = 0; d < real_->size(); ++d) devices_.push_back(std::make_unique<failing_device>(real_->at(d), d));
    if (device::ptx_capability* const ptx = real_->ptx(); ptx != nullptr) ptx_.emplace(*ptx);
  }

  [[nodiscard]] unsigned size() const noexcept override { return real_->size(); }
  [[nodiscard]] device::device& at(unsigned index) override { return *devices_[index]; }

  void register_host(void* address, std::size_t bytes, int fd, std::int64_t offset) override {
    perform("register_host", HPE_ERROR_OUT_OF_MEMORY, [&] { real_->register_host(address, bytes, fd, offset); });
  }
  void unregister_host(void* address, std::size_t bytes) noexcept override { real_->unregister_host(address, bytes); }
  void expect_copies(const void* address, std::size_t bytes) override { real_->expect_copies(address, bytes); }
  void prepare_host(const void* address, std::size_t bytes) override { real_->prepare_host(address, bytes); }
  [[nodiscard]] std::size_t prepared_host(const void* address, std::size_t bytes) const noexcept override {
    return real_->prepared_host(address, bytes);
  }
  void release_host(void* address, std::size_t bytes) noexcept override { real_->release_host(address, bytes); }
  std::vector<device::shared_part> share(void* address, std::size_t bytes) override {
    return perform("share", HPE_ERROR_SYSTEM, [&] { return real_->share(address, bytes); });
  }
  std::uint32_t import_memory(void* address, std::span<const device::shared_part> parts) override {
    return perform("import_memory", HPE_ERROR_OUT_OF_MEMORY, [&] { return real_->import_memory(address, parts); });
  }
  void drop_import(void* address, std::size_t bytes) noexcept override { real_->drop_import(address, bytes); }
  std::uint32_t load_module(const std::string& path) override {
    return perform("load_module", HPE_ERROR_NOT_FOUND, [&] { return real_->load_module(path); });
  }
  device::kernel_id find_kernel(std::uint32_t module, const std::string& name) override {
    return perform("find_kernel", HPE_ERROR_NOT_FOUND, [&] { return real_->find_kernel(module, name); });
  }
  [[nodiscard]] device::ptx_capability* ptx() noexcept override { return ptx_ ? &*ptx_ : nullptr; }
  [[nodiscard]] bool reached(timepoint point) const noexcept override { return real_->reached(point); }
  bool wait(timepoint point, std::chrono::steady_clock::time_point deadline) override {
    return real_->wait(point, deadline);
  }
  [[nodiscard]] std::string work_before(timepoint point) const override { return real_->work_before(point); }
  [[nodiscard]] std::optional<hpe::error> status_of(timepoint point) const override {
    if (failed(point, false)) return late_failure();
    return real_->status_of(point);
  }
  std::optional<hpe::error> take_failure_of(timepoint point) override {
    if (failed(point, true)) return late_failure();
    return real_->take_failure_of(point);
  }
  std::optional<hpe::error> take_failure(int device) override {
    {
      const test_code here;
      const std::lock_guard lock(record.mutex);
      for (auto& [point, told] : record.failed)
        if (!std::exchange(told, true)) return late_failure();
    }
    return real_->take_failure(device);
  }
  std::unique_ptr<device::gate> create_gate() override {
    return perform("create_gate", HPE_ERROR_SYSTEM, [&] { return real_->create_gate(); });
  }

 private:
  static bool failed(timepoint point, bool take) {
    const std::lock_guard lock(record.mutex);
    const auto found = record.failed.find({point.timeline, point.value});
    if (found == record.failed.end()) return false;
    if (take) found->second = true;
    return true;
  }

  std::unique_ptr<device::device_set> real_;
  std::vector<std::unique_ptr<failing_device>> devices_;
  std::optional<failing_ptx> ptx_;
};

}  // namespace

void forget_accepted() {
  const std::lock_guard lock(record.mutex);
  record.work = {};
}

accepted_work accepted() {
  const std::lock_guard lock(record.mutex);
  return record.work;
}

void await_late_command() { const std::unique_lock chosen(record.choosing); }

device_write late_command() {
  const std::lock_guard lock(record.mutex);
  return record.late;
}

int killed_device() {
  const std::lock_guard lock(record.mutex);
  return record.killed;
}

}  // namespace sweep

// The names that the linker gives to device::open_devices and to its replacement.
std::unique_ptr<hpe::device::device_set>
real_open_devices(const std::string& specification, const hpe::uvas_layout& layout) asm(
    "__real__ZN3hpe6device12open_devicesERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEERKNS_11uvas_layoutE");
std::unique_ptr<hpe::device::device_set>
failing_open_devices(const std::string& specification, const hpe::uvas_layout& layout) asm(
    "__wrap__ZN3hpe6device12open_devicesERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEERKNS_11uvas_layoutE");

std::unique_ptr<hpe::device::device_set> failing_open_devices(const std::string& specification,
                                                              const hpe::uvas_layout& layout) {
  auto real = real_open_devices(specification, layout);
  const sweep::test_code here;
  return std::make_unique<sweep::failing_set>(std::move(real));
}
