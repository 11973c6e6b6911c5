// The destructor destroys streams first, then the objects that commands of streams use, and contexts last.
#include "runtime/device/cuda/cuda_set.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <thread>

#include "runtime/base/error.h"
#include "runtime/device/checks.h"
#include "runtime/device/cuda/cuda_gate.h"
#include "runtime/device/cuda/cuda_ptx_module.h"
#include "runtime/device/cuda/fingerprint_kernel.h"
#include "runtime/device/observer.h"

namespace hpe::device::cuda {

namespace {

cuda_pinned_memory::budgets budgets_of(const options& wanted) {
  const std::size_t all =
      static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t pinned = wanted.pinned_memory != 0 ? wanted.pinned_memory : all / 10;
  return {pinned, std::min<std::size_t>({wanted.prepared_memory, all / 16, pinned / 2})};
}

}  // namespace

cuda_set::cuda_set(const driver& entries, std::optional<unsigned> wished, const uvas_layout& layout,
                   const options& wanted)
    : cu_(entries), layout_(layout), peers_allowed_(wanted.cuda_peers) {
  int found = 0;
  cu_.check(cu_.cuDeviceGetCount(&found), "counting GPUs");
  const auto most = std::min(static_cast<unsigned>(found), layout.segments);
  HPE_REQUIRE(most > 0, HPE_ERROR_INITIALIZATION, "the CUDA driver finds no GPU; HPE_DEVICES=soft:2 needs none");
  HPE_REQUIRE(wished.value_or(most) <= most, HPE_ERROR_INITIALIZATION,
              "HPE_DEVICES=\"cuda:{}\": there are {} GPUs that can be used", wished.value_or(0), most);

  const os::numa machine;
  memory_ = std::make_unique<device_memory>(cu_, layout_);
  for (unsigned d = 0; d < wished.value_or(most); ++d) {
    CUdevice ordinal = 0;
    cu_.check(cu_.cuDeviceGet(&ordinal, static_cast<int>(d)), "finding a GPU");
    // An unchanged program may never use the other GPUs: it is spread only if launches gain by that, and with
    // --oversubscribe, it chooses its GPUs itself.
    const bool starts_later = d > 0 && (wanted.spread || wanted.oversubscribe == oversubscription::on);
    devices_.push_back(std::make_unique<cuda_device>(*this, d, ordinal, wanted, starts_later));
    devices_.back()->find_node(machine);
    fingerprints_.emplace_back();
  }
  for (const auto& device : devices_) device->find_peers();
  const auto forever = std::chrono::steady_clock::time_point::max();
  host_ = std::make_unique<cuda_pinned_memory>(
      cu_, layout_, budgets_of(wanted),
      cuda_pinned_memory::environment{[this](timepoint p) { return reached(p); },
                                      [this, forever](timepoint p) { wait(p, forever); },
                                      [this] { return live_context(); }});
  kernels_ =
      std::make_unique<kernel_table>(cu_, devices_.size(), [this](std::size_t d) { return devices_[d]->context(); });
}

cuda_set::~cuda_set() {
  streams_.clear();
  const entered here(cu_, live_context());
  kernels_.reset();
  host_.reset();
  memory_.reset();
}

device& cuda_set::at(unsigned index) {
  HPE_REQUIRE(index < devices_.size(), HPE_ERROR_INVALID_DEVICE, "there is no device {}; there are {} devices", index,
              devices_.size());
  return *devices_[index];
}

CUcontext cuda_set::live_context() const noexcept {
  const auto alive = std::find_if(devices_.begin(), devices_.end(), [](const auto& device) {
    return !device->lost() && device->context_if_started() != nullptr;
  });
  return (alive == devices_.end() ? devices_.front() : *alive)->context_if_started();
}

void cuda_set::register_host(void* address, std::size_t bytes, int fd, std::int64_t offset) {
  const entered here(cu_, live_context());
  host_->insert(reinterpret_cast<std::uintptr_t>(address), bytes, fd, offset);
}

void cuda_set::unregister_host(void* address, std::size_t bytes) noexcept {
  log_failure_of("unregistering host memory", [&] {
    const entered here(cu_, live_context());
    host_->erase(reinterpret_cast<std::uintptr_t>(address), bytes);
  });
}

void cuda_set::expect_copies(const void* address, std::size_t bytes) {
  host_->expect(reinterpret_cast<std::uintptr_t>(address), bytes);
}

void cuda_set::prepare_host(const void* address, std::size_t bytes) {
  host_->prepare(reinterpret_cast<std::uintptr_t>(address), bytes);
}

std::size_t cuda_set::prepared_host(const void* address, std::size_t bytes) const noexcept {
  return host_->prepared(reinterpret_cast<std::uintptr_t>(address), bytes);
}

void cuda_set::release_host(void* address, std::size_t bytes) noexcept {
  log_failure_of("unpinning host memory", [&] {
    const entered here(cu_, live_context());
    host_->release(reinterpret_cast<std::uintptr_t>(address), bytes);
  });
}

std::vector<shared_part> cuda_set::share(void* address, std::size_t bytes) {
  const entered here(cu_, live_context());
  return memory_->share(reinterpret_cast<std::uintptr_t>(address), bytes);
}

std::uint32_t cuda_set::import_memory(void* address, std::span<const shared_part> parts) {
  std::vector<std::optional<CUdevice>> users;
  for (const auto& device : devices_) device->start();  // import_memory() finds out which devices reach the memory
  for (const auto& device : devices_)
    users.push_back(device->lost() ? std::nullopt : std::optional<CUdevice>(device->ordinal()));
  const entered here(cu_, live_context());
  return memory_->import_memory(reinterpret_cast<std::uintptr_t>(address), parts, users);
}

void cuda_set::drop_import(void* address, std::size_t bytes) noexcept {
  log_failure_of("unmapping memory of another process", [&] {
    const entered here(cu_, live_context());
    memory_->unmap(reinterpret_cast<std::uintptr_t>(address), bytes, device_memory::foreign,
                   device_memory::after::released);
  });
}

std::vector<bool> cuda_set::alive() const {
  std::vector<bool> result;
  for (const auto& device : devices_) result.push_back(!device->lost());
  return result;
}

std::uint32_t cuda_set::load_module(const std::string& path) {
  const auto wanted = alive();
  if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) throw devices_.front()->loss();
  return kernels_->load(path, wanted);
}

std::uint32_t cuda_set::load_ptx(std::span<const std::string> texts) {
  const auto wanted = alive();
  if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) throw devices_.front()->loss();
  return kernels_->load_ptx(texts, wanted);
}

const cuda_set::fingerprint_code& cuda_set::code_of_fingerprints(unsigned device) {
  fingerprint_code& code = fingerprints_[device];
  std::call_once(code.loads, [&] {
    const std::string text = fingerprint_ptx;
    std::vector<bool> only(devices_.size());
    only[device] = true;
    const std::uint32_t module = kernels_->load_ptx(std::span(&text, 1), only);
    code.kernel = find_kernel(module, fingerprint_kernel_name);
    code.sums = kernels_->find_variable(module, fingerprint_sums_name).at(device);
  });
  return code;
}

std::unique_ptr<device_ptx_module> cuda_set::load(std::vector<std::string> texts, ptx_recording /*reads*/) {
  auto made = std::make_unique<cuda_ptx_module>(*this, std::move(texts));
  const auto& functions = made->program()->functions;
  if (std::any_of(functions.begin(), functions.end(),
                  [](const auto& f) { return f->system_call == ptx::builtin::print; }))
    prints_ = true;
  return made;
}

std::vector<printed> cuda_set::take_output() {
  if (!prints_) return {};
  for (const auto& device : devices_) {
    CUcontext const used = device->context_if_started();
    if (device->lost() || used == nullptr) continue;
    const entered here(cu_, used);
    cu_.cuCtxSynchronize();  // a failure is ignored here, because the stream of the failed command reports it
  }
  return {};
}

kernel_id cuda_set::find_kernel(std::uint32_t module, const std::string& name) {
  const kernel_id found = kernels_->find(module, name, alive());
  if (observer() != nullptr) observer()->kernel_found(found.function, name);
  return found;
}

cuda_stream& cuda_set::add_stream(cuda_device& device, priority level) {
  const lock_guard lock(streams_mutex_);
  const std::size_t number = streams_.size() + 1;
  HPE_REQUIRE(number < most_streams, HPE_ERROR_NOT_SUPPORTED, "there are {} streams already; more are not possible",
              streams_.size());
  streams_.push_back(std::make_unique<cuda_stream>(*this, device, static_cast<std::uint32_t>(number), level));
  by_timeline_[number].store(streams_.back().get());
  if (observer() != nullptr) observer()->stream_created(device.index(), static_cast<std::uint32_t>(number), level);
  return *streams_.back();
}

cuda_stream* cuda_set::find_stream(timepoint point) const noexcept {
  return point.timeline < most_streams ? by_timeline_[point.timeline].load(std::memory_order_acquire) : nullptr;
}

bool cuda_set::reached(timepoint point) const noexcept {
  cuda_stream* const stream = find_stream(point);
  return stream == nullptr || stream->reached(point.value);
}

bool cuda_set::wait(timepoint point, std::chrono::steady_clock::time_point deadline) {
  using clock = std::chrono::steady_clock;
  const auto begin = clock::now();
  while (!reached(point)) {
    const auto now = clock::now();
    if (now >= deadline) return false;
    if (now - begin < polling::awake) {
      __builtin_ia32_pause();
    } else {
      std::this_thread::sleep_until(std::min(deadline, now + polling::pause(now - begin)));
    }
  }
  return true;
}

std::string cuda_set::work_before(timepoint point) const {
  const cuda_stream* const stream = find_stream(point);
  return stream == nullptr ? "nothing" : fmt::format("work on device {}", stream->device().index());
}

std::optional<error> cuda_set::status_of(timepoint point) const {
  cuda_stream* const stream = find_stream(point);
  if (stream == nullptr || !stream->reached(point.value)) return std::nullopt;
  if (point.value > stream->lost_after()) return stream->device().loss();
  return stream->failure_of(point.value);
}

std::optional<error> cuda_set::take_failure_of(timepoint point) {
  auto found = status_of(point);
  if (!found) return std::nullopt;
  const lock_guard lock(failures_mutex_);
  const unsigned device = find_stream(point)->device().index();
  std::erase_if(failures_, [&](const auto& failure) {
    return failure.first == device && std::string_view(failure.second.what()) == found->what();
  });
  return found;
}

void cuda_set::failed(unsigned device, const error& what) {
  const lock_guard lock(failures_mutex_);
  failures_.emplace_back(device, what);
}

void cuda_set::failed(std::list<device_failure>& what) noexcept {
  const lock_guard lock(failures_mutex_);
  failures_.splice(failures_.end(), what);
}

std::optional<error> cuda_set::take_failure(int device) {
  HPE_REQUIRE(device < static_cast<int>(size()), HPE_ERROR_INVALID_DEVICE,
              "there is no device {}; there are {} devices", device, size());
  const lock_guard lock(failures_mutex_);
  const auto oldest = std::find_if(failures_.begin(), failures_.end(), [&](const auto& failure) {
    return device < 0 || failure.first == static_cast<unsigned>(device);
  });
  if (oldest == failures_.end()) return std::nullopt;
  const error result = oldest->second;
  failures_.erase(oldest);
  return result;
}

std::unique_ptr<gate> cuda_set::create_gate() { return std::make_unique<cuda_gate>(*this); }

}  // namespace hpe::device::cuda
