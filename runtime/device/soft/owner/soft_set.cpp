// The destructor ends the monitor's thread before it destroys the soft_device objects, which the thread uses, and ends
// the device processes before it destroys the fabric. In a child process after fork, the destructor does not end the
// parent's devices.
#include "runtime/device/soft/owner/soft_set.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <filesystem>
#include <thread>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/own_process.h"
#include "runtime/device/checks.h"
#include "runtime/device/observer.h"
#include "runtime/device/soft/owner/soft_device.h"
#include "runtime/device/soft/owner/soft_gate.h"
#include "runtime/device/soft/owner/soft_ptx_module.h"
#include "runtime/os/thread.h"
#include "runtime/os/virtual_memory.h"

namespace hpe::device::soft {

namespace {

using device_bits = std::uint32_t;
constexpr device_bits bit(unsigned device) { return device_bits{1} << device; }

constexpr std::uint64_t longest_timeout = 1'000'000;  // seconds

unsigned threads_of_each(const topology& shape, std::uint64_t wanted) {
  constexpr std::uint64_t most = 1024;
  if (wanted != 0) return static_cast<unsigned>(std::min(wanted, most));
  return std::max(1U, os::usable_cores() / shape.devices());
}

/// Returns the number of parts into which the cores are divided among the devices; 0 if the cores are not divided. By
/// default, the cores are not divided if HPE_SOFT_THREADS is set, or in an MPI job: each rank would divide the same
/// cores, so that some cores would run several devices, and other cores none.
unsigned core_shares(const topology& shape, const options& wanted) {
  if (wanted.soft_cores == core_division::shares) return shape.devices();
  if (wanted.soft_cores == core_division::any) return 0;
  return rank_by_environment() != nullptr || wanted.soft_threads != 0 ? 0 : shape.devices();
}

}  // namespace

std::unique_ptr<device_set> open(const topology& shape, const uvas_layout& layout, const options& wanted) {
  return std::make_unique<soft_set>(shape, layout, wanted);
}

soft_set::soft_set(const topology& shape, const uvas_layout& layout, const options& wanted)
    : owner_(::getpid()),
      fabric_(shape),
      output_(fabric_),
      timeout_(std::min<std::uint64_t>(wanted.device_timeout, longest_timeout)),
      requests_(shape.devices(), 0),
      free_gates_(timeline::all) {
  configure(layout, wanted);
  start(wanted);
  feeder_ = std::make_unique<feeder>(create_gate());
  std::vector<softd_process*> watched;
  for (const auto& process : processes_) watched.push_back(process.get());
  constexpr std::chrono::milliseconds between_looks{100};
  monitor_ = std::make_unique<monitor>(
      std::move(watched), [this](unsigned index, std::string_view how) { devices_[index]->lose(how); },
      timeout_.count() == 0 ? std::chrono::milliseconds(0) : between_looks,
      [this] {
        for (const auto& device : devices_) device->look_for_hanging(std::chrono::steady_clock::now(), timeout_);
      });
}

void soft_set::configure(const uvas_layout& layout, const options& wanted) {
  fabric_configuration& state = fabric_.configuration();
  state.layout = layout;
  state.threads = threads_of_each(state.shape, wanted.soft_threads);
  state.core_shares = core_shares(state.shape, wanted);
  const bool finds_races = wanted.races == race_search::report;
  if (wanted.check) recorded_ = std::make_unique<recorded_reader>(layout, state.shape.devices());
  state.prepared_memory = wanted.prepared_memory;
  state.host_limit = parse_link("HPE_SOFT_HOST_LINK", wanted.soft_host_link);
  state.peer_limit = parse_link("HPE_SOFT_PEER_LINK", wanted.soft_peer_link);
  // Interpreted kernels would take longer than a simulated link.
  const bool has_links = state.host_limit.bytes_per_second != 0 || state.peer_limit.bytes_per_second != 0;
  state.ptx = {.interprets = wanted.ptx_engine == kernel_engine::interpreter || finds_races,
               .begins_interpreted = wanted.ptx_engine == kernel_engine::automatic && !has_links,
               .in_lockstep = wanted.warps == warp_scheduling::lockstep,
               .finds_races = finds_races,
               .records_accesses = wanted.check};
}

void soft_set::start(const options& wanted) {
  const unsigned count = configuration().shape.devices();
  const std::vector<int> nodes = parse_nodes(wanted.soft_nodes, count);
  const std::string program = find_softd(wanted.softd);
  std::vector<int> descriptors{fabric_.file(), -1};
  for (unsigned d = 0; d < count; ++d) {
    memory_files_.push_back(os::create_memory_file("hpe-device", configuration().layout.size()));
    descriptors.push_back(memory_files_.back().get());
  }
  if (recorded_) descriptors.push_back(-1);
  control_request join;
  join.id = fabric::stamp;
  for (unsigned d = 0; d < count; ++d) {
    processes_.push_back(std::make_unique<softd_process>(program, d, configuration().layout));
    join.device = d;
    descriptors[1] = output_.file(d);
    if (recorded_) descriptors.back() = recorded_->file(d);
    send_request(processes_[d]->control(), join, descriptors);
  }
  for (unsigned d = 0; d < count; ++d) {
    processes_[d]->await_start();
    reply answer;
    if (!receive_reply(processes_[d]->control(), answer))
      HPE_THROW(HPE_ERROR_INITIALIZATION, "device {} did not start: {} {}", d, program, processes_[d]->reap());
    HPE_REQUIRE(answer.status == HPE_SUCCESS, HPE_ERROR_INITIALIZATION, "device {} did not start: {}", d, answer.text);
    devices_.push_back(std::make_unique<soft_device>(*this, d, *processes_[d], wanted, nodes[d]));
  }
}

soft_set::~soft_set() {
  if (::getpid() != owner_) {
    monitor_->forget();
    feeder_->forget();
    // Never deleted: the feeder's thread may have held the feeder's mutex when the process forked.
    static_cast<void>(feeder_.release());
    return;
  }
  quit();
}

void soft_set::quit() noexcept {
  constexpr std::chrono::milliseconds patience{1000};
  for (const auto& device : devices_) device->expect_end();
  control_request end;
  end.what = control_request::kind::quit;
  for (const auto& process : processes_) {
    try {
      send_request(process->control(), end, {});
    } catch (const std::exception&) {  // the request cannot be sent: kill the process instead
      process->kill();
    }
  }
  if (!monitor_->wait_for_all(patience)) {
    for (const auto& process : processes_)
      if (!process->reaped()) process->kill();
    monitor_->wait_for_all(patience);
  }
  monitor_.reset();
}

bool soft_set::take_accesses(unsigned device, function_ref<void(const recorded_stretch&)> visit) {
  if (!recorded_) return false;
  HPE_REQUIRE(device < devices_.size(), HPE_ERROR_INVALID_DEVICE, "there is no device {}; there are {} devices", device,
              devices_.size());
  recorded_->take(device, visit);
  return true;
}

std::vector<recorded_race> soft_set::take_races(unsigned device) {
  return recorded_ && device < devices_.size() ? recorded_->take_races(device) : std::vector<recorded_race>();
}

device& soft_set::at(unsigned index) {
  HPE_REQUIRE(index < devices_.size(), HPE_ERROR_INVALID_DEVICE, "there is no device {}; there are {} devices", index,
              devices_.size());
  return *devices_[index];
}

bool soft_set::ask(const std::function<bool(unsigned)>& wanted, const control_request& what,
                   std::span<const int> descriptors, const control_request* undo) {
  const lock_guard lock(asking_);
  // A bit mask, which needs no allocation, because unmapping must succeed even if host memory is used up.
  device_bits asked = 0;
  device_bits agreed = 0;
  std::optional<error> refusal;
  for (unsigned d = 0; d < size() && !refusal; ++d) {
    if (!wanted(d) || devices_[d]->lost()) continue;
    if (what.what == control_request::kind::unmap) {
      if (send_in_any_case(d, what)) asked |= bit(d);
      continue;
    }
    try {
      if (send(d, what, descriptors)) asked |= bit(d);
    } catch (const error& e) {
      refusal = e;
    }
  }
  for (unsigned d = 0; d < size(); ++d) {
    reply answer;
    if ((asked & bit(d)) == 0 || !receive(d, answer)) continue;
    if (answer.status == HPE_SUCCESS)
      agreed |= bit(d);
    else if (!refusal)
      refusal = error(answer.status, std::string(answer.text, ::strnlen(answer.text, sizeof answer.text)));
  }
  if (!refusal) return asked != 0;
  for (unsigned d = 0; d < size(); ++d) {
    reply ignored;
    if ((agreed & bit(d)) != 0 && undo != nullptr && send_in_any_case(d, *undo)) receive(d, ignored);
  }
  throw error(*refusal);
}

bool soft_set::send_in_any_case(unsigned device, const control_request& what) {
  // Sending may fail because the operating system lacks memory, and succeed a moment later.
  constexpr int tries = 3;
  constexpr std::chrono::milliseconds between_tries{1};
  for (int n = 1;; ++n) {
    try {
      return send(device, what, {});
    } catch (const error& e) {
      if (n < tries) {
        std::this_thread::sleep_for(between_tries);
        continue;
      }
      devices_[device]->condemn(fmt::format("the message that memory was removed could not be sent: {}", e.what()));
      return false;
    }
  }
}

bool soft_set::send(unsigned device, control_request what, std::span<const int> descriptors) {
  HPE_REQUIRE(
      processes_[device]->control_is_open(), HPE_ERROR_SYSTEM,
      "device {} can no longer be reached: the program closed hpe's descriptors (fstat finds another file there, or "
      "none)",
      device);
  what.number = ++requests_[device];
  return send_request(processes_[device]->control(), what, descriptors);
}

bool soft_set::receive(unsigned device, reply& answer) {
  const int socket = processes_[device]->control();
  for (;;) {
    pollfd waiting{socket, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, timeout_.count() == 0 ? -1 : static_cast<int>(timeout_.count() * 1000));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0)
      devices_[device]->condemn(
          fmt::format("it did not answer a request for {} s (HPE_DEVICE_TIMEOUT)", timeout_.count()));
    // If poll fails, hpe waits for the reply without a time limit, because hpe must know whether the device has carried
    // out the request.
    if (!receive_reply(socket, answer)) return false;
    // A reply with an older number answers a request for whose reply hpe has stopped waiting.
    if (answer.number == requests_[device]) return true;
  }
}

std::string soft_set::name_of_function(std::uint32_t function) const {
  const lock_guard lock(names_mutex_);
  return function < functions_.size() ? functions_[function] : fmt::format("number {}", function);
}

void soft_set::register_host(void* address, std::size_t bytes, int fd, std::int64_t offset) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  addresses_.insert(begin, bytes, {});
  control_request what;
  what.what = control_request::kind::register_host;
  what.address = begin;
  what.bytes = bytes;
  what.offset = offset;
  control_request undo = what;
  undo.what = control_request::kind::unregister_host;
  try {
    ask([](unsigned) { return true; }, what, std::span(&fd, 1), &undo);
  } catch (...) {
    addresses_.erase(begin, bytes, host_location);
    throw;
  }
}

void soft_set::unregister_host(void* address, std::size_t bytes) noexcept {
  log_failure_of("unregistering host memory",
                 [&] { forget(control_request::kind::unregister_host, address, bytes, host_location); });
}

std::vector<shared_part> soft_set::share(void* address, std::size_t bytes) {
  std::vector<shared_part> parts;
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  for (std::uintptr_t at = begin; at < begin + bytes;) {
    const auto range = addresses_.find(at);
    HPE_REQUIRE(range && range->where.device >= 0, HPE_ERROR_INVALID_ARGUMENT,
                "the {} bytes at {} cannot be shared: the byte at {:#x} is not device memory", bytes, address, at);
    const std::uintptr_t end = std::min(range->end, begin + bytes);
    parts.push_back(
        {memory_file(static_cast<unsigned>(range->where.device)), at - configuration().layout.base, end - at});
    at = end;
  }
  return parts;
}

std::uint32_t soft_set::import_memory(void* address, std::span<const shared_part> parts) {
  const auto everybody = [](unsigned) { return true; };
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  std::size_t bytes = 0;
  for (const shared_part& part : parts) bytes += part.bytes;
  addresses_.insert(begin, bytes, {foreign_location, 0});
  std::size_t done = 0;
  try {
    for (const shared_part& part : parts) {
      control_request what;
      what.what = control_request::kind::import_memory;
      what.address = begin + done;
      what.bytes = part.bytes;
      what.offset = static_cast<std::int64_t>(part.offset);
      control_request undo = what;
      undo.what = control_request::kind::drop_import;
      HPE_REQUIRE(ask(everybody, what, std::span(&part.file, 1), &undo), HPE_ERROR_DEVICE_LOST, "all devices are lost");
      done += part.bytes;
    }
  } catch (...) {
    if (done != 0) drop_import(address, done);
    addresses_.erase(begin + done, bytes - done, foreign_location);
    throw;
  }
  return (std::uint32_t{1} << size()) - 1;
}

void soft_set::drop_import(void* address, std::size_t bytes) noexcept {
  log_failure_of("unmapping memory of another process",
                 [&] { forget(control_request::kind::drop_import, address, bytes, foreign_location); });
}

void soft_set::forget(control_request::kind how, void* address, std::size_t bytes, int location) {
  control_request what;
  what.what = how;
  what.address = reinterpret_cast<std::uintptr_t>(address);
  what.bytes = bytes;
  addresses_.erase(what.address, bytes, location);
  ask([](unsigned) { return true; }, what);
}

std::uint32_t soft_set::load_module(const std::string& path) {
  // Make the path absolute, because a device process has the working directory that the program had at the start of the
  // device.
  std::error_code ignored;
  const bool is_file = std::filesystem::exists(path, ignored);
  control_request what;
  what.what = control_request::kind::load_module;
  what.set_text(is_file ? std::filesystem::absolute(path).string() : path);
  what.id = next_module();
  HPE_REQUIRE(ask([](unsigned) { return true; }, what), HPE_ERROR_DEVICE_LOST, "all devices are lost");
  return what.id;
}

std::uint32_t soft_set::next_module() {
  const lock_guard lock(asking_);
  return modules_++;
}

std::unique_ptr<device_ptx_module> soft_set::load(std::vector<std::string> texts, ptx_recording reads) {
  return std::make_unique<soft_ptx_module>(*this, std::move(texts), reads);
}

kernel_id soft_set::find_kernel(std::uint32_t module, const std::string& name) {
  control_request what;
  what.what = control_request::kind::find_kernel;
  what.module = module;
  what.set_text(name);
  {
    const lock_guard lock(asking_);
    HPE_REQUIRE(module < modules_, HPE_ERROR_NOT_FOUND, "kernel \"{}\": there is no module {}", name, module);
  }
  {
    const lock_guard lock(names_mutex_);
    what.id = static_cast<std::uint32_t>(functions_.size());
    functions_.push_back(name);
  }
  HPE_REQUIRE(ask([](unsigned) { return true; }, what), HPE_ERROR_DEVICE_LOST, "all devices are lost");
  if (observer() != nullptr) observer()->kernel_found(what.id, name);
  return {module, what.id};
}

soft_device& soft_set::device_of(timepoint point) const { return *devices_[fabric::device_of(point.timeline)]; }

bool soft_set::wait(timepoint point, std::chrono::steady_clock::time_point deadline) {
  return fabric_.find_timeline(point.timeline) == nullptr || fabric_.wait(point.timeline, point.value, deadline);
}

std::string soft_set::work_before(timepoint point) const {
  return fabric_.find_timeline(point.timeline) == nullptr ? "nothing" : device_of(point).work_before(point);
}

std::optional<error> soft_set::status_of(timepoint point) const {
  const timeline* line = fabric_.find_timeline(point.timeline);
  if (line == nullptr || !line->reached(point.value)) return std::nullopt;
  if (point.value > line->lost_after.load()) return device_of(point).loss();
  if (const auto found = line->failures.find(point.value)) return error(found->status, found->sentence);
  return std::nullopt;
}

std::optional<error> soft_set::take_failure_of(timepoint point) {
  std::optional<error> found = status_of(point);
  if (!found) return found;
  const lock_guard lock(failures_);
  device_of(point).leave_out_failure(point);
  return found;
}

hpeFault soft_set::fault_of(timepoint point) const {
  const timeline* line = fabric_.find_timeline(point.timeline);
  const auto record = line == nullptr ? std::nullopt : line->failures.find(point.value);
  return record ? record->fault : HPE_FAULT_NONE;
}

std::optional<error> soft_set::take_failure(int device) {
  HPE_REQUIRE(device < static_cast<int>(size()), HPE_ERROR_INVALID_DEVICE,
              "there is no device {}; there are {} devices", device, size());
  const lock_guard lock(failures_);
  soft_device* oldest = nullptr;
  for (const auto& candidate : devices_) {
    if (device >= 0 && candidate->index() != static_cast<unsigned>(device)) continue;
    if (candidate->oldest_failure() == no_failure) continue;
    if (oldest == nullptr || candidate->oldest_failure() < oldest->oldest_failure()) oldest = candidate.get();
  }
  if (oldest == nullptr) return std::nullopt;
  return oldest->take_oldest_failure();
}

std::unique_ptr<gate> soft_set::create_gate() {
  std::uint64_t free = free_gates_.load();
  do {
    HPE_REQUIRE(free != 0, HPE_ERROR_NOT_SUPPORTED, "there are {} gates already; soft devices cannot have more",
                max_gates);
  } while (!free_gates_.compare_exchange_weak(free, free & (free - 1)));
  return std::make_unique<soft_gate>(fabric_, free_gates_, static_cast<unsigned>(std::countr_zero(free)));
}

}  // namespace hpe::device::soft
