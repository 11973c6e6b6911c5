#include "runtime/core/operations/launch_checks.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/core/operations/read_only_memory.h"
#include "runtime/work/accesses.h"

namespace hpe::core {

namespace {

std::uint64_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }
const void* pointer(std::uint64_t address) {
  return reinterpret_cast<const void*>(address);  // NOLINT(performance-no-int-to-ptr): addresses are numbers
}

// Whether a launch names its memory, and nothing else may change this memory while it runs.
bool is_declared(const work_usage& usage) { return !usage.everything && !usage.in_reach && !usage.concurrent; }

check::launch_race race_of(device::recorded_race what) {
  const auto side = [](device::recorded_race::access& a) {
    return check::launch_race::access{static_cast<check::use>(a.how), a.number, std::move(a.place)};
  };
  return {what.is_shared, what.begin, what.end, side(what.earlier), side(what.later), std::move(what.variable)};
}

}  // namespace

launch_checks::launch_checks(const options& chosen, device::device_set& devices, allocator& memory)
    : devices_(devices),
      ptx_(*devices.ptx()),
      memory_(memory),
      records_(ptx_.take_accesses(0, [](const device::recorded_stretch&) {})),
      all_(chosen.check_launches == checked_launches::all),
      report_(chosen),
      findings_(
          report_.ignored(),
          [&memory](std::uint64_t address) {
            const allocation found = memory.find(pointer(address));
            return check::memory_extent{number(found.base), found.region != nullptr ? found.bytes : 0};
          },
          [&memory](std::uint64_t address) { return memory.is_in_space(pointer(address)); }),
      recordings_(devices.size()),
      prints_(devices, log_level::warn, "HPE_CHECK: changes of read-only memory are not found") {}

void launch_checks::record(unsigned device) {
  recordings_[device].alone.lock();
  recordings_[device].caller = std::this_thread::get_id();
}

void launch_checks::take(unsigned device, function_ref<void(const device::recorded_stretch&)> visit) {
  static_cast<void>(ptx_.take_accesses(device, visit));
}

std::vector<device::recorded_race> launch_checks::take_races(unsigned device) {
  std::vector<device::recorded_race> result = ptx_.take_races(device);
  recording& its = recordings_[device];
  if (its.caller.load() == std::this_thread::get_id()) {
    its.caller = std::thread::id();
    its.alone.unlock();
  }
  return result;
}

timepoint launch_checks::run(unsigned device, hpeKernel kernel, const work_usage& usage, describe_function describe,
                             queue_function queue) {
  has_launches_ = true;
  if (records_ && kernel->ptx != nullptr) return run_recorded(device, usage, describe, queue);
  if (!is_declared(usage) || !is_chosen(kernel)) return queue(nullptr);
  check::checked_operation what = describe();
  what.place = std::make_shared<const check::call_place>(check::call_place::here("a launch"));
  what.source_of = nullptr;
  return run_compared(usage, std::move(what), queue);
}

timepoint launch_checks::run(hpeEnqueueFunction function, const char* call, const work_usage& usage,
                             queue_function queue) {
  has_launches_ = true;
  if (!is_declared(usage)) return queue(nullptr);
  const auto place = std::make_shared<const check::call_place>(check::call_place::here(call));
  if (!is_chosen(reinterpret_cast<const void*>(function), place->hash())) return queue(nullptr);
  return run_compared(usage, {.what = std::string("work of ") + call, .place = place}, queue);
}

timepoint launch_checks::run_recorded(unsigned device, const work_usage& usage, describe_function describe,
                                      queue_function queue) {
  recording& its = recordings_[device];
  if (its.caller.load() == std::this_thread::get_id()) return queue(nullptr);
  check::checked_operation what = describe();
  what.place = std::make_shared<const check::call_place>(check::call_place::here("a launch"));
  const std::lock_guard checks(one_at_a_time_);
  const std::lock_guard lock(its.alone);
  if (usage.concurrent) {  // the program may let such launches wait for each other
    std::erase_if(its.concurrent, [this](timepoint p) { return devices_.reached(p); });
    its.concurrent.reserve(its.concurrent.size() + 1);
    return its.concurrent.emplace_back(queue(nullptr));
  }
  work::wait_for(its.concurrent, devices_);
  take(device, [](const device::recorded_stretch&) {});  // those of launches over several devices
  static_cast<void>(ptx_.take_races(device));
  const timepoint end = queue(nullptr);
  work::wait_for(std::span(&end, 1), devices_);
  std::vector<check::access_range> ranges;
  take(device, [&](const device::recorded_stretch& each) {
    ranges.push_back({each.begin, each.end, static_cast<check::use>(each.how), each.number});
  });
  std::vector<check::launch_race> races;
  for (device::recorded_race& each : ptx_.take_races(device)) races.push_back(race_of(std::move(each)));
  const auto launch = std::make_shared<const check::checked_operation>(std::move(what));
  if (!usage.everything && !usage.in_reach) findings_.compare(launch, ranges_of(usage.accesses), ranges);
  findings_.add(launch, races);
  return end;
}

timepoint launch_checks::run_compared(const work_usage& usage, check::checked_operation what, queue_function queue) {
  const std::vector<check::declared_range> declared = ranges_of(usage.accesses);
  read_only_memory compared(devices_, prints_, memory_, declared);
  const timepoint end = queue(&compared);
  const std::vector<check::access_range> written = compared.changed();
  findings_.compare(std::make_shared<const check::checked_operation>(std::move(what)), declared, written);
  return end;
}

void launch_checks::compare(const check::operation_ptr& work, std::span<const check::access_range> recorded,
                            std::span<const hpeAccess> accesses) {
  std::vector<check::declared_range> declared = ranges_of(accesses);
  for (check::declared_range& each : declared) each.reads |= each.writes;  // the work may read what it has written
  std::vector<check::access_range> compared;
  for (const check::access_range& each : recorded) {
    const allocation in = memory_.find(pointer(each.begin));
    const std::uint64_t begin = number(in.base), end = begin + in.bytes;
    const auto lies_in = [&](const check::declared_range& d) { return d.begin < end && begin < d.end; };
    if (in.region != nullptr && std::ranges::any_of(declared, lies_in)) compared.push_back(each);
  }
  findings_.compare(work, declared, compared);
}

bool launch_checks::is_chosen(const void* code, std::uint64_t place) {
  if (records_ || all_) return true;
  const lock_guard lock(counting_);
  const std::uint64_t number = ++launches_[{code, place}];
  return number <= 3 || std::has_single_bit(number);
}

void launch_checks::allocated(const void* base, const char* function) {
  findings_.allocated(number(base), std::make_shared<const check::call_place>(check::call_place::here(function)));
}

std::vector<check::declared_range> launch_checks::ranges_of(std::span<const hpeAccess> accesses) const {
  std::vector<check::declared_range> result;
  for (const hpeAccess& each : accesses) {
    const std::uint64_t begin = number(each.address);
    const allocation found = memory_.find(each.address);
    const std::uint64_t end = each.size != 0 ? begin + each.size : number(found.base) + found.bytes;
    result.push_back({begin, end, each.mode != HPE_OUT, each.mode != HPE_IN});
  }
  return result;
}

}  // namespace hpe::core
