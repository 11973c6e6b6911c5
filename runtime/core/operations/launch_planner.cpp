#include "runtime/core/operations/launch_planner.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/base/log.h"

namespace hpe::core {

namespace {

// Arrays move through host memory. Devices have no replicas of arrays.
spread::machine rates_of(const device::properties& device, std::size_t devices) {
  spread::machine m;
  m.devices = static_cast<std::uint32_t>(devices);
  m.move_rate = 1e10;
  m.free_bytes = 0;
  if (device.kind == HPE_DEVICE_CUDA) return m;
  // All memory is the machine's, behind links if they have limits.
  const auto over = [](double link, double rate) { return link > 0 ? std::min(link, rate) : rate; };
  m.local_rate = 1e10;
  m.read_rate = m.write_rate = over(device.peer_rate, m.local_rate);
  m.host_rate = over(device.host_rate, m.local_rate);
  m.move_rate = over(device.host_rate, 2e9);
  m.instruction_rate = 1e9 * std::max(device.compute_units, 1U);
  m.launch_seconds = 5e-5;
  return m;
}

}  // namespace

launch_planner::launch_planner(device::device_set& devices, allocator& memory, std::vector<unsigned> list)
    : memory_(memory), list_(std::move(list)), planner_(rates_of(devices.at(list_.front()).info(), list_.size())) {}

void launch_planner::describe_homes(const coherence::region& r, spread::allocation& to) const {
  to.homes.clear();
  r.for_each_home(r.whole(), [&](unsigned home, coherence::byte_range part) {
    // Memory of a device that is not in the list is as far away as the host's.
    const auto place = std::find(list_.begin(), list_.end(), home);
    const auto number = r.single_copy() || place == list_.end()
                            ? spread::host
                            : static_cast<spread::device_number>(place - list_.begin());
    if (!to.homes.empty() && to.homes.back().home == number) {
      to.homes.back().last = part.end;
    } else {
      to.homes.push_back({part.begin, part.end, number});
    }
  });
}

const spread::allocation* launch_planner::describe(const void* pointer) {
  const allocation found = memory_.find(pointer);
  if (found.region == nullptr) return nullptr;
  const coherence::region& r = *found.region;
  const lock_guard lock(r.mutex);
  if (!r.alive) return nullptr;
  // With its valid bytes on the host, a region moves without a copy: they are uploaded to the new homes.
  const bool on_host = r.blocks().off_device() == r.blocks().count();
  const std::uint64_t version = 2 * r.homes_version() + (on_host ? 1 : 0);
  constexpr std::size_t most_described = 4096;
  if (described_.size() > most_described) described_.clear();
  described& known = described_[&r];
  if (known.version == version) return &known.what;
  known.version = version;
  spread::allocation& a = known.what;
  a.address = reinterpret_cast<std::uint64_t>(r.layout.base);
  a.bytes = r.layout.extent;
  const bool may_move = !r.single_copy() && r.layout.small == nullptr && r.exports.empty() && r.shared == 0;
  a.granule = may_move ? granule_size : 0;
  a.is_empty = on_host;
  a.version = version;
  describe_homes(r, a);
  return &a;
}

// A move that fails leaves the array where it is, which is slower and as right.
void launch_planner::move(const spread::allocation& what, const spread::placement& to) {
  std::vector<std::uint16_t> homes((what.bytes + granule_size - 1) / granule_size);
  for (const spread::home_run& run : spread::homes_under(to, what, static_cast<std::uint32_t>(list_.size()))) {
    if (run.home < 0) return;
    for (std::uint64_t g = run.first / granule_size; g * granule_size < run.last; ++g)
      homes[g] = static_cast<std::uint16_t>(list_[static_cast<std::size_t>(run.home)]);
  }
  const auto* const base = reinterpret_cast<const void*>(what.address);  // NOLINT(performance-no-int-to-ptr)
  try {
    memory_.place(base, std::move(homes));
  } catch (const error& e) {
    log(log_level::info, "an array of a launch over several devices stays where it is: {}", e.what());
  }
}

launch_planner::plan launch_planner::decide(const spread::kernel_model& kernel, const spread::launch& launch) {
  const lock_guard lock(mutex_);
  std::vector<const spread::allocation*> arrays;
  for (const spread::kernel_model::pointer& p : kernel.pointers()) {
    const void* pointer = nullptr;
    if (p.offset + sizeof pointer <= launch.parameter_bytes)
      std::memcpy(&pointer, static_cast<const std::byte*>(launch.parameters) + p.offset, sizeof pointer);
    arrays.push_back(describe(pointer));
  }
  const spread::decision& decided = planner_.decide(kernel, launch, arrays);
  for (std::size_t n = 0; n < arrays.size(); ++n)
    if (arrays[n] != nullptr && decided.arrays[n].move_to.how != spread::placement::kind::stay)
      move(*arrays[n], decided.arrays[n].move_to);
  return {decided.how.parts, decided.reason};
}

void launch_planner::forget(const spread::kernel_model& kernel) {
  const lock_guard lock(mutex_);
  planner_.forget(kernel);
}

}  // namespace hpe::core
