#include "runtime/core/operations/launch_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/base/granule.h"
#include "runtime/work/accesses.h"

namespace hpe::core {

namespace {

std::uint64_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }
const void* pointer(std::uint64_t address) {
  return reinterpret_cast<const void*>(address);  // NOLINT(performance-no-int-to-ptr): addresses are numbers
}

check::launch_race race_of(device::recorded_race what) {
  const auto side = [](device::recorded_race::access& a) {
    return check::launch_race::access{static_cast<check::use>(a.how), a.number, std::move(a.place)};
  };
  return {what.is_shared, what.begin, what.end, side(what.earlier), side(what.later), std::move(what.variable)};
}

}  // namespace

launch_checks::launch_checks(const options& chosen, device::device_set& devices, allocator& memory, copier& copies)
    : devices_(devices),
      ptx_(*devices.ptx()),
      memory_(memory),
      copies_(copies),
      report_(chosen),
      findings_(
          report_.ignored(),
          [&memory](std::uint64_t address) {
            const allocation found = memory.find(pointer(address));
            return check::memory_extent{number(found.base), found.region != nullptr ? found.bytes : 0};
          },
          [&memory](std::uint64_t address) { return memory.is_in_space(pointer(address)); }),
      recordings_(devices.size()) {}

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

timepoint launch_checks::run(unsigned device, check::checked_operation what, const work_usage& usage,
                             function_ref<timepoint()> queue) {
  recording& its = recordings_[device];
  if (its.caller.load() == std::this_thread::get_id()) return queue();
  what.place = std::make_shared<const check::call_place>(check::call_place::here("a launch"));
  const std::lock_guard checks(one_at_a_time_);
  const std::lock_guard lock(its.alone);
  if (usage.concurrent) {  // the program may let such launches wait for each other
    std::erase_if(its.concurrent, [this](timepoint p) { return devices_.reached(p); });
    return its.concurrent.emplace_back(queue());
  }
  work::wait_for(its.concurrent, devices_);
  take(device, [](const device::recorded_stretch&) {});  // those of launches over several devices
  static_cast<void>(ptx_.take_races(device));
  const timepoint end = queue();
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

timepoint launch_checks::run_function(const std::string& kernel, const work_usage& usage,
                                      function_ref<timepoint()> queue) {
  if (usage.everything) return queue();
  const auto place = std::make_shared<const check::call_place>(check::call_place::here("a launch"));
  const std::lock_guard checks(one_at_a_time_);
  const std::vector<read_memory> before = read_only(usage.accesses);
  const timepoint end = queue();
  if (before.empty()) return end;
  work::wait_for(std::span(&end, 1), devices_);
  std::vector<check::access_range> written;
  for (const read_memory& each : before)
    if (const check::access_range range = changed(each); range.begin != range.end) written.push_back(range);
  const auto what = std::make_shared<const check::checked_operation>(
      check::checked_operation{fmt::format("kernel {}", kernel), place, true});
  findings_.compare(what, ranges_of(usage.accesses), written);
  return end;
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

std::vector<launch_checks::read_memory> launch_checks::read_only(std::span<const hpeAccess> accesses) const {
  // More memory is not compared, because the bytes before the launch are kept.
  constexpr std::uint64_t most = std::uint64_t{1} << 30;
  std::vector<read_memory> result;
  std::uint64_t sum = 0;
  const std::vector<check::declared_range> all = ranges_of(accesses);
  for (const check::declared_range& each : all) {
    const auto writes_it = [&](const auto& r) { return r.writes && r.begin < each.end && r.end > each.begin; };
    const allocation found = memory_.find(pointer(each.begin));
    // Memory with one copy cannot have a changed copy.
    if (std::any_of(all.begin(), all.end(), writes_it) || found.region == nullptr || found.region->single_copy())
      continue;
    if (sum += each.end - each.begin; sum > most) break;
    read_memory& made = result.emplace_back();
    made.begin = static_cast<const std::byte*>(pointer(each.begin));
    made.bytes.resize(each.end - each.begin);
    copies_.copy_for_program(made.bytes.data(), made.begin, made.bytes.size());
  }
  return result;
}

// Returns the range from the first to the last changed byte; an empty range if the device's copy has not changed.
check::access_range launch_checks::changed(const read_memory& before) const {
  const auto begin = number(before.begin);
  check::access_range result{begin, begin, check::use::write, 0};
  std::vector<std::byte> now;
  for (std::uint64_t at = begin; at < begin + before.bytes.size();) {
    const std::uint64_t end = std::min((at / granule_size + 1) * granule_size, begin + before.bytes.size());
    now.resize(end - at);
    const auto* const place = static_cast<const std::byte*>(pointer(at));
    if (!ptx_.peek(memory_.likely_home(place), place, now)) break;
    const auto old = before.bytes.begin() + static_cast<std::ptrdiff_t>(at - begin);
    const auto first = std::mismatch(now.begin(), now.end(), old).first - now.begin();
    if (first != static_cast<std::ptrdiff_t>(now.size())) {
      std::size_t last = now.size() - 1;
      while (now[last] == old[static_cast<std::ptrdiff_t>(last)]) --last;
      if (result.begin == result.end) result.begin = at + static_cast<std::uint64_t>(first);
      result.end = at + last + 1;
    }
    at = end;
  }
  return result;
}

}  // namespace hpe::core
