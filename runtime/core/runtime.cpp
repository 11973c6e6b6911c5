#include "runtime/core/runtime.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <system_error>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/base/log.h"
#include "runtime/device/checks.h"
#include "runtime/device/traced/watcher.h"
#include "runtime/trace/profile.h"
#include "runtime/trace/recorder.h"
#include "runtime/trace/report_part.h"
#include "runtime/trace/stalls.h"
#include "runtime/trace/status_page.h"

namespace hpe::core {

namespace {

// The segments are laid out before the devices are opened, so the number of devices is not known yet. Therefore there
// is a segment for each possible device. Unused segments cost nothing.
constexpr unsigned most_devices = counters::most_devices;

void check(const options& o) {
  const auto power_of_two = [](std::uint64_t v) { return v != 0 && (v & (v - 1)) == 0; };
  HPE_REQUIRE(o.block_size == 0 || (power_of_two(o.block_size) && o.block_size >= 4096 && o.block_size <= granule_size),
              HPE_ERROR_INITIALIZATION, "HPE_BLOCK_SIZE={} is neither 0 nor a power of two from 4k to 2M",
              o.block_size);
  HPE_REQUIRE(o.host_memory == 0 || o.host_memory >= work::host_spill::least, HPE_ERROR_INITIALIZATION,
              "HPE_HOST_MEMORY={} is neither 0 nor at least {}", o.host_memory, work::host_spill::least);
  HPE_REQUIRE(
      (o.host_memory != 0) == !o.spill.empty(), HPE_ERROR_INITIALIZATION,
      "HPE_HOST_MEMORY={} (the limit on host memory, in bytes) and HPE_SPILL=\"{}\" (the folder for data beyond "
      "this limit) must be set together",
      o.host_memory, o.spill);
  HPE_REQUIRE(o.staging_chunk >= 4096 && o.staging_chunk % 4096 == 0 && o.staging_chunk <= (std::uint64_t{1} << 30),
              HPE_ERROR_INITIALIZATION, "HPE_STAGING_CHUNK={} is not a multiple of 4k up to 1G", o.staging_chunk);
  HPE_REQUIRE(o.staging_buffers >= 1 && o.staging_buffers <= 1024, HPE_ERROR_INITIALIZATION,
              "HPE_STAGING_BUFFERS={} is not a number from 1 to 1024", o.staging_buffers);
}

transfer::engine::fitting fitting_from(calibration_use wanted) {
  using fitting = transfer::engine::fitting;
  switch (wanted) {
    case calibration_use::again: return fitting::again;
    case calibration_use::off: return fitting::off;
    case calibration_use::on: break;
  }
  return fitting::once;
}

transfer::engine::staging_options staging_from(const options& o, const transfer::device_groups& near) {
  HPE_REQUIRE(o.copy_threads <= 64, HPE_ERROR_INITIALIZATION, "HPE_COPY_THREADS={} is not a number from 0 to 64",
              o.copy_threads);
  transfer::engine::staging_options result{o.staging_chunk, o.staging_buffers, static_cast<unsigned>(o.copy_threads),
                                           fitting_from(o.calibration), near};
  HPE_REQUIRE(result.bytes() <= o.segment_size, HPE_ERROR_INITIALIZATION,
              "{} staging buffers of {} bytes for each of {} NUMA nodes do not fit into a segment of {} bytes "
              "(HPE_STAGING_BUFFERS, HPE_STAGING_CHUNK, HPE_SEGMENT_SIZE)",
              o.staging_buffers, o.staging_chunk, near.groups(), o.segment_size);
  return result;
}

void tell_devices(device::device_set& devices) {
  std::vector<trace::status_page::device> table(devices.size());
  for (unsigned d = 0; d < devices.size(); ++d) {
    const device::properties& info = devices.at(d).info();
    table[d].memory = info.memory_bytes;
    info.name.copy(table[d].name.data(), table[d].name.size() - 1);
  }
  trace::status_page::own().tell_devices(table.data(), devices.size());
}

// A failed system call during the start becomes HPE_ERROR_INITIALIZATION.
runtime* start(const std::function<void(options&)>& adjust) {
  try {
    options chosen = options::from_environment();
    if (adjust) adjust(chosen);
    // The record of soft devices needs 15 times the address space, which therefore must be small.
    constexpr std::uint64_t recorded_segment = std::uint64_t{128} << 30;
    if (chosen.check && chosen.segment_size == options().segment_size && !device::opens_gpus(chosen.devices))
      chosen.segment_size = recorded_segment;
    return new runtime(chosen);
  } catch (const error& e) {
    if (e.status() != HPE_ERROR_SYSTEM) throw;
    HPE_THROW(HPE_ERROR_INITIALIZATION, "hpe cannot start: {}", e.what());
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {  // from libraries that hpe uses
    HPE_THROW(HPE_ERROR_INITIALIZATION, "hpe cannot start: {}", e.what());
  }
}

std::atomic<runtime*> the_runtime{nullptr};
std::atomic<pid_t> started_by{0};

}  // namespace

runtime::runtime(const options& chosen) : option_(chosen), count_(trace::status_page::own().count) {
  set_log_level(option_.log);
  for (const std::string& sentence : misspelt_options()) log(log_level::warn, "{}", sentence);
  check(option_);
  device::prepare_devices(option_.devices);
  space_ = std::make_unique<memory::uvas>(option_.address_base, option_.segment_size, most_devices);
  granules_ = std::make_unique<memory::granule_table>(space_->layout());
  if (option_.profile) trace::profile::start();
  trace::recorder::start(option_.trace);
  trace::tell_of_stalls(option_.stall_after);
  trace::start_report(option_.report);
  devices_ = device::open_devices(option_.devices, space_->layout());
  if (trace::recorder* const to = trace::recorder::active())
    trace_ = std::make_unique<device::traced::watcher>(*devices_, space_->layout(), *to);
  HPE_INVARIANT(devices_->size() >= 1 && devices_->size() <= most_devices);
  tell_devices(*devices_);
  const transfer::device_groups near = transfer::near_devices(*devices_);
  // With several groups of devices, each region is served by a lane that is near its home. With one group, the lanes
  // are assigned to regions in turn.
  regions_ = std::make_unique<coherence::region_table>(near.groups() > 1 ? devices_->size() : 1);
  // Registers the whole alias as host memory for the copy engines. Its pages are not allocated before they are used.
  std::byte* const all = space_->alias(space_->segment_begin(memory::segment_kind::device, 0));
  devices_->register_host(all, space_->layout().size(), space_->shadow_file(), 0);
  engine_ = std::make_unique<transfer::engine>(*devices_, *space_, staging_from(option_, near), count_);
  views_ = std::make_unique<work::host_view>(count_);
  host_ = std::make_unique<work::host_spill>(option_.host_memory, option_.spill, *devices_, *space_, *views_, *regions_,
                                             count_);
  room_ = std::make_unique<work::residency>(*devices_, *engine_, *views_, *regions_, *host_, sharing_, count_);
  faults_ = std::make_unique<fault::service>(
      *space_,
      fault::lane_environment{resources(), *granules_, *regions_, announced_, count_,
                              [near](unsigned device) { near.settle_thread(near.group(device)); }},
      devices_->size());
  host_->serve([this] { faults_->look_again(); });
  foreign_addresses_ = std::make_unique<memory::segment_allocator>(space_->segment_begin(memory::segment_kind::foreign),
                                                                   space_->layout().segment_size / granule_size);
  const work::resources with = resources();
  allocator_ = std::make_unique<allocator>(option_, with, *space_, *granules_, *regions_, *faults_, count_, sharing_,
                                           *foreign_addresses_);
  launcher_ = std::make_unique<launcher>(with, *regions_, announced_, count_, *allocator_);
  announcer_ = std::make_unique<announcer>(with, *space_, *regions_, announced_, *faults_, *allocator_);
  copier_ = std::make_unique<copier>(with, *space_, announced_, *faults_, *allocator_);
  if (option_.check) {
    // Only one part of hpe may take fingerprints on GPUs.
    const bool is_possible =
        devices_->at(0).info().kind == HPE_DEVICE_SOFT || option_.oversubscribe != oversubscription::on;
    if (is_possible) checks_ = std::make_unique<launch_checks>(option_, *devices_, *allocator_);
    if (!is_possible) log(log_level::warn, "HPE_CHECK: the program is not checked, because HPE_OVERSUBSCRIBE=on");
  }
  ptx_ = std::make_unique<ptx_modules>(*devices_, *allocator_, *copier_, *launcher_, checks_.get());
  spreader_ = std::make_unique<spreader>(*devices_, *allocator_, *copier_, *launcher_, *ptx_, option_.spread_cut,
                                         option_.zero_copy);
  loans_ = std::make_unique<loan_pool>(*devices_, *space_, engine_->staging().bytes());
  host_access_ = std::make_unique<host_access>(with, *space_, announced_, *allocator_, *loans_);
  exports_ = std::make_unique<exports>(with, *space_, *allocator_, exporter_, sharing_);
  imports_ =
      std::make_unique<imports>(with, *space_, *allocator_, *copier_, *exports_, neighbours_, *foreign_addresses_);
  log(log_level::info, "{} devices, address space at {:#x}", devices_->size(), space_->layout().base);
}

// The lanes use host_, and the threads of host_ wake the lanes. So the destructor ends these threads before it destroys
// the members.
runtime::~runtime() { host_->stop(); }

runtime& runtime::instance(const std::function<void(options&)>& adjust) {
  runtime* found = the_runtime.load(std::memory_order_acquire);
  if (found == nullptr) {
    static std::mutex starting;
    const std::lock_guard lock(starting);
    found = the_runtime.load(std::memory_order_acquire);
    if (found == nullptr) {
      found = start(adjust);
      started_by.store(::getpid(), std::memory_order_relaxed);
      ::pthread_atfork(nullptr, nullptr, [] { started_by.store(0, std::memory_order_relaxed); });
      the_runtime.store(found, std::memory_order_release);
    }
  }
  HPE_REQUIRE(started_by.load(std::memory_order_relaxed) != 0, HPE_ERROR_FORKED,
              "hpe was started by the parent of process {}; a child made by fork can use hpe only after exec",
              ::getpid());
  return *found;
}

runtime* runtime::started() noexcept {
  runtime* const found = the_runtime.load(std::memory_order_acquire);
  return started_by.load(std::memory_order_relaxed) != 0 ? found : nullptr;
}

host_access* host_access::of(std::uintptr_t address) noexcept {
  runtime* const it = runtime::started();
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the caller had a pointer
  return it != nullptr && it->space().contains(reinterpret_cast<void*>(address)) ? &it->for_host_code() : nullptr;
}

bool host_access::in_use() noexcept { return runtime::started() != nullptr; }

bool host_access::inherited(const void* p) noexcept {
  const runtime* const its = the_runtime.load(std::memory_order_acquire);
  return its != nullptr && !in_use() && its->space().contains(p);
}

bool host_access::meets(const void* p, std::size_t bytes) noexcept {
  const runtime* const it = runtime::started();
  if (it == nullptr) return false;
  const uvas_layout& layout = it->space().layout();
  const auto begin = reinterpret_cast<std::uintptr_t>(p);
  return begin < layout.base + layout.size() && bytes > 0 && begin + (bytes - 1) >= layout.base;
}

void runtime::synchronize(int device) {
  if (device >= 0) device::require_device(*devices_, device);
  const other_work wait = waits_also_;
  const auto failure_of_others = wait != nullptr ? wait(device, devices_->size()) : std::nullopt;
  coherence::point_set points;
  for (unsigned d = 0; d < devices_->size(); ++d) {
    if (device >= 0 && d != static_cast<unsigned>(device)) continue;
    launcher_->add_last_points(d, points);
    engine_->for_each_stream(d, [&](const device::stream& s) { points.add(s.last()); });
  }
  work::wait_for(points.points(), *devices_);
  ptx_->write_output();
  if (const auto failure = devices_->take_failure(device)) throw *failure;
  if (failure_of_others) throw *failure_of_others;
}

std::optional<error> runtime::wait(timepoint point) {
  work::wait_for(std::span(&point, 1), *devices_);
  ptx_->write_output();
  return devices_->take_failure_of(point);
}

void runtime::write_output_at_exit() {
  std::call_once(at_exit_, [] {
    std::atexit([] {
      runtime* const it = started();
      if (it == nullptr) return;
      constexpr std::chrono::seconds patience{2};
      const auto deadline = std::chrono::steady_clock::now() + patience;
      coherence::point_set points;
      for (unsigned d = 0; d < it->devices_->size(); ++d) it->launcher_->add_last_points(d, points);
      for (const timepoint p : points.points()) it->devices_->wait(p, deadline);
      it->ptx_->write_output();
    });
  });
}

}  // namespace hpe::core
