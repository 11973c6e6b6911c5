#include "runtime/core/operations/launch_planner.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/base/log.h"

namespace hpe::core {

namespace {

// Arrays and replicas are copied between the devices; without peer access, arrays move through host memory. A move on
// GPUs takes a copy over the link, one within the device, and new memory.
spread::machine rates_of(const device::properties& device, std::size_t devices, bool connected) {
  spread::machine m;
  m.devices = static_cast<std::uint32_t>(devices);
  m.move_rate = connected ? 1e11 : 1e10;
  m.replica_bytes = device.memory_bytes;
  if (device.kind == HPE_DEVICE_CUDA) return m;
  // All memory is the machine's, behind links if they have limits.
  const auto over = [](double link, double rate) { return link > 0 ? std::min(link, rate) : rate; };
  m.local_rate = 1e10;
  m.read_rate = m.write_rate = over(device.peer_rate, m.local_rate);
  m.host_rate = over(device.host_rate, m.local_rate);
  m.move_rate = over(connected && direct_mover::pays(device) ? device.peer_rate : device.host_rate, 2e9);
  m.copy_rate = over(device.peer_rate, 2e9);
  m.instruction_rate = 1e9 * std::max(device.compute_units, 1U);
  m.launch_seconds = 5e-5;
  return m;
}

bool all_reach_each_other(device::device_set& devices, const std::vector<unsigned>& list) {
  return std::all_of(list.begin(), list.end(), [&](unsigned one) {
    return std::all_of(list.begin(), list.end(), [&](unsigned other) { return devices.at(one).can_access(other); });
  });
}

const void* pointer_in(const spread::launch& launch, std::uint32_t offset) {
  const void* pointer = nullptr;
  if (offset + sizeof pointer <= launch.parameter_bytes)
    std::memcpy(&pointer, static_cast<const std::byte*>(launch.parameters) + offset, sizeof pointer);
  return pointer;
}

}  // namespace

launch_planner::launch_planner(device::device_set& devices, allocator& memory, replicas& copies,
                               std::vector<unsigned> list)
    : memory_(memory),
      replicas_(copies),
      list_(std::move(list)),
      planner_(rates_of(devices.at(list_.front()).info(), list_.size(), all_reach_each_other(devices, list_))) {}

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
  described& known = described_[&r];
  if (std::exchange(known.homes, r.homes_version()) != r.homes_version()) known.has_no_replica = false;
  const bool is_replicated = replicas_.are_valid(r, list_);
  const std::uint64_t version = known.homes << 3U | (std::uint64_t{on_host} << 2U) |
                                (std::uint64_t{is_replicated} << 1U) | std::uint64_t{known.has_no_replica};
  if (known.version == version) return &known.what;
  known.version = version;
  spread::allocation& a = known.what;
  a.address = reinterpret_cast<std::uint64_t>(r.layout.base);
  a.bytes = r.layout.extent;
  const bool may_move = !r.single_copy() && r.layout.small == nullptr && r.exports.empty() && r.shared == 0;
  a.granule = may_move ? granule_size : 0;
  a.is_empty = on_host;
  a.is_replicated = is_replicated;
  a.may_replicate = !known.has_no_replica;
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

// Without a replica the launch uses the array where it is, which is slower and as right.
void launch_planner::replicate(const spread::kernel_model::pointer& of, const spread::launch& launch, plan& to) {
  const void* const pointer = pointer_in(launch, of.offset);
  coherence::region* const r = memory_.find(pointer).region;
  if (r == nullptr) return;
  std::vector<std::byte*> found;
  for (const unsigned device : list_) {
    found.push_back(replicas_.bring(*r, device, to.holds));
    if (found.back() != nullptr) continue;
    described_[r].has_no_replica = true;
    return;
  }
  for (std::size_t n = 0; n < found.size(); ++n)
    to.replacing[n].push_back({of.offset, found[n] + r->offset_of(pointer)});
}

launch_planner::plan launch_planner::decide(const spread::kernel_model& kernel, const spread::launch& launch) {
  constexpr std::size_t most_described = 4096;
  const lock_guard lock(mutex_);
  if (described_.size() > most_described) described_.clear();
  std::vector<const spread::allocation*> arrays;
  for (const spread::kernel_model::pointer& p : kernel.pointers())
    arrays.push_back(describe(pointer_in(launch, p.offset)));
  const spread::decision& decided = planner_.decide(kernel, launch, arrays);
  plan result{decided.how.parts, {}, {}, decided.reason};
  result.replacing.resize(list_.size());
  using kind = spread::placement::kind;
  for (std::size_t n = 0; n < arrays.size(); ++n) {
    if (arrays[n] == nullptr) continue;
    const spread::array_decision& each = decided.arrays[n];
    if (each.use_replica) {
      replicate(kernel.pointers()[n], launch, result);
    } else if (each.move_to.how != kind::stay) {
      move(*arrays[n], each.move_to);
    }
  }
  return result;
}

void launch_planner::forget(const spread::kernel_model& kernel) {
  const lock_guard lock(mutex_);
  planner_.forget(kernel);
}

}  // namespace hpe::core
