#include "runtime/device/traced/traced_set.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/device/traced/watcher.h"

namespace hpe::device::traced {

namespace {

/// What all streams of a set share.
struct account {
  trace::recorder& to;
  uvas_layout layout;
  watcher watch;
  std::mutex mutex;
  std::map<std::pair<std::uint32_t, std::uint32_t>, const char*> kernels;  // under the mutex

  account(device_set& devices, trace::recorder& recorder, const uvas_layout& where)
      : to(recorder), layout(where), watch(devices, recorder) {}

  const char* name_of(kernel_id kernel) {
    const std::lock_guard lock(mutex);
    const auto found = kernels.find({kernel.module, kernel.function});
    return found != kernels.end() ? found->second : "kernel";
  }
};

class traced_stream final : public stream {
 public:
  traced_stream(stream& inner, account& all, trace::track where) : inner_(inner), all_(all), where_(where) {}

  timepoint copy(void* destination, const void* source, std::size_t bytes) override {
    const bool up = !all_.layout.contains(source);
    const bool down = !all_.layout.contains(destination);
    const char* between = down ? "copy to host" : "copy between devices";
    return watched(trace::category::copy, up ? "copy to device" : between, bytes,
                   [&] { return inner_.copy(destination, source, bytes); });
  }
  timepoint fill(void* destination, std::uint8_t value, std::size_t bytes) override {
    return watched(trace::category::copy, "fill", bytes, [&] { return inner_.fill(destination, value, bytes); });
  }
  timepoint launch(kernel_id kernel, const shape& shape, std::span<const std::byte> parameters) override {
    return watched(trace::category::kernel, all_.name_of(kernel), 0,
                   [&] { return inner_.launch(kernel, shape, parameters); });
  }
  timepoint enqueue(const std::function<int(void*)>& function) override {
    return watched(trace::category::kernel, "work of the program", 0, [&] { return inner_.enqueue(function); });
  }
  void wait(timepoint point) override {
    const std::lock_guard lock(mutex_);
    inner_.wait(point);
    if (!point.none()) after_.push_back(point);
  }
  [[nodiscard]] timepoint last() const override { return inner_.last(); }

 private:
  // The order of watching is the order of queuing.
  template <class Queue>
  timepoint watched(trace::category what, const char* name, std::size_t bytes, const Queue& queue) {
    const std::lock_guard lock(mutex_);
    const auto now = trace::clock::now();
    const timepoint point = queue();
    all_.watch.add({what, name, where_, bytes, std::exchange(after_, {}), point, now});
    return point;
  }

  stream& inner_;
  account& all_;
  const trace::track where_;
  std::mutex mutex_;
  std::vector<timepoint> after_;  // under the mutex
};

class traced_device final : public device {
 public:
  traced_device(device& inner, account& all, unsigned number) : inner_(inner), all_(all), number_(number) {
    all.to.name_group(1 + number, fmt::format("device {}: {}", number, inner.info().name));
  }

  [[nodiscard]] const properties& info() const noexcept override { return inner_.info(); }
  [[nodiscard]] memory_usage memory() const override { return inner_.memory(); }
  [[nodiscard]] bool lost() const noexcept override { return inner_.lost(); }
  void map(void* address, std::size_t bytes) override { inner_.map(address, bytes); }
  void unmap(void* address, std::size_t bytes) override { inner_.unmap(address, bytes); }
  [[nodiscard]] bool can_access(unsigned peer) const noexcept override { return inner_.can_access(peer); }
  stream& create_stream(priority level) override {
    static constexpr const char* levels[] = {"copies that threads wait for", "launches and their copies", "prefetch",
                                             "uploads behind writers"};
    const std::lock_guard lock(mutex_);
    const trace::track where{1 + number_, static_cast<std::uint32_t>(streams_.size())};
    all_.to.name_row(where, fmt::format("stream {}: {}", where.row, levels[static_cast<unsigned>(level)]));
    streams_.push_back(std::make_unique<traced_stream>(inner_.create_stream(level), all_, where));
    return *streams_.back();
  }

 private:
  device& inner_;
  account& all_;
  const unsigned number_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<traced_stream>> streams_;
};

class traced_set final : public device_set {
 public:
  traced_set(std::unique_ptr<device_set> inner, const uvas_layout& layout, trace::recorder& to)
      : inner_(std::move(inner)), all_(*inner_, to, layout) {
    for (unsigned d = 0; d < inner_->size(); ++d)
      devices_.push_back(std::make_unique<traced_device>(inner_->at(d), all_, d));
    to.before_writing([this] { all_.watch.settle(); });
  }

  [[nodiscard]] unsigned size() const noexcept override { return inner_->size(); }
  [[nodiscard]] device& at(unsigned index) override {
    return index < devices_.size() ? *devices_[index] : inner_->at(index);
  }
  void register_host(void* address, std::size_t bytes, int fd, std::int64_t offset) override {
    inner_->register_host(address, bytes, fd, offset);
  }
  void unregister_host(void* address, std::size_t bytes) override { inner_->unregister_host(address, bytes); }
  void expect_copies(const void* address, std::size_t bytes) override { inner_->expect_copies(address, bytes); }
  void release_host(void* address, std::size_t bytes) override { inner_->release_host(address, bytes); }
  std::vector<shared_part> share(void* address, std::size_t bytes) override { return inner_->share(address, bytes); }
  std::uint32_t import_memory(void* address, std::span<const shared_part> parts) override {
    return inner_->import_memory(address, parts);
  }
  void drop_import(void* address, std::size_t bytes) override { inner_->drop_import(address, bytes); }
  std::uint32_t load_module(const std::string& path) override { return inner_->load_module(path); }
  std::unique_ptr<ptx_module> load_ptx(std::vector<std::string> texts) override {
    return inner_->load_ptx(std::move(texts));
  }
  kernel_id find_kernel(std::uint32_t module, const std::string& name) override {
    const kernel_id found = inner_->find_kernel(module, name);
    const char* const kept = all_.to.keep(name);
    const std::lock_guard lock(all_.mutex);
    all_.kernels[{found.module, found.function}] = kept;
    return found;
  }
  [[nodiscard]] bool reached(timepoint point) const noexcept override { return inner_->reached(point); }
  bool wait(timepoint point, std::chrono::steady_clock::time_point deadline) override {
    return inner_->wait(point, deadline);
  }
  [[nodiscard]] std::optional<error> status_of(timepoint point) const override { return inner_->status_of(point); }
  std::optional<command_failure> take_failure_of(timepoint point) override { return inner_->take_failure_of(point); }
  std::vector<printed> take_output() override { return inner_->take_output(); }
  std::optional<error> take_failure(int device) override { return inner_->take_failure(device); }
  std::unique_ptr<gate> create_gate() override { return inner_->create_gate(); }

 private:
  const std::unique_ptr<device_set> inner_;
  account all_;
  std::vector<std::unique_ptr<traced_device>> devices_;
};

}  // namespace

std::unique_ptr<device_set> wrap(std::unique_ptr<device_set> devices, const uvas_layout& layout, trace::recorder* to) {
  if (to == nullptr) return devices;
  return std::make_unique<traced_set>(std::move(devices), layout, *to);
}

}  // namespace hpe::device::traced
