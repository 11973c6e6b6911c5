#include "runtime/core/operations/launcher.h"

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include "runtime/base/error.h"

namespace hpe::core {

using coherence::point_set;
using coherence::region;
using work::device_access;
using work::submission;

namespace {

const device::ptx_kernel& find_in(const loaded_ptx& module, const std::string& name) {
  HPE_REQUIRE(module.on_devices != nullptr, HPE_ERROR_INVALID_ARGUMENT,
              "kernel {}: the module of PTX was unloaded (hpeModuleUnload)", name);
  const auto& kernels = module.on_devices->kernels();
  const auto found = std::find_if(kernels.begin(), kernels.end(), [&](const auto& k) { return k.name == name; });
  HPE_REQUIRE(found != kernels.end(), HPE_ERROR_NOT_FOUND,
              "there is no kernel \"{}\" in the module of PTX, which has {}{}", name, kernels.size(),
              kernels.empty() ? " kernels" : fmt::format(" kernels, as {}", kernels.front().name));
  return *found;
}

// Queues a launch, which `command` queues on the stream, between the commands of a frame, which can be null.
template <class Command>
timepoint queue_in(launch_frame* around, device::stream& stream, const Command& command) {
  if (around == nullptr) return command();
  point_set first;
  around->begin(first);
  for (const timepoint p : first.points()) stream.wait(p);
  const timepoint end = command();
  around->end(end);
  return end;
}

thread_local unsigned functions_of_program = 0;  // that the thread runs

// Returns a function that calls a function of the program.
std::function<int(void*)> called_for_hpe(const std::function<int(void*)>& function) {
  class counted {
   public:
    counted() { ++functions_of_program; }
    counted(const counted&) = delete;
    counted& operator=(const counted&) = delete;
    ~counted() { --functions_of_program; }
  };
  return [&function](void* stream) {
    const counted here;
    return function(stream);
  };
}

submission::memory memory_for(const work_usage& usage) {
  return usage.zero_copy ? submission::memory::zero_copy_too : submission::memory::needed;
}

timepoint enqueue_in(submission& work, device::stream& stream, const std::function<int(void*)>& function) {
  try {
    return stream.enqueue(function);
  } catch (...) {
    work.abandon();
    throw;
  }
}

}  // namespace

std::string words_for_incomplete_launch(const std::string& kernel, std::size_t queued, std::size_t parts,
                                        const std::string& why) {
  return fmt::format("kernel {}: {} of {} parts of a launch were queued, and the launch cannot be completed: {}",
                     kernel, queued, parts, why);
}

bool queues_for_hpe() noexcept { return functions_of_program != 0; }

launcher::launcher(const work::resources& with, coherence::region_table& regions, coherence::announcements& announced,
                   counters& count, allocator& memory)
    : with_(with),
      regions_(regions),
      announced_(announced),
      count_(count),
      memory_(memory),
      settled_(with.devices.size()) {
  for (unsigned d = 0; d < with.devices.size(); ++d) {
    compute_.push_back(std::make_unique<compute>());
    for (device::stream*& s : compute_.back()->streams) s = &with.devices.at(d).create_stream(device::priority::launch);
  }
}

hpeModule launcher::load(const std::string& path) {
  const lock_guard lock(modules_mutex_);
  auto& entry = modules_[path];
  if (entry == nullptr) {
    auto loaded = std::make_unique<hpeModule_st>();
    loaded->path = path;
    loaded->id = with_.devices.load_module(path);
    entry = std::move(loaded);
  }
  return entry.get();
}

hpeKernel launcher::find(hpeModule module, const std::string& name) {
  const lock_guard lock(modules_mutex_);
  const device::ptx_kernel* const ptx = module->ptx == nullptr ? nullptr : &find_in(*module->ptx, name);
  auto& entry = module->kernels[name];
  if (entry == nullptr)
    entry =
        std::make_unique<hpeKernel_st>(hpeKernel_st{with_.devices.find_kernel(module->id, name), name, module, ptx});
  return entry.get();
}

hpeModule launcher::keep(std::unique_ptr<hpeModule_st> module) {
  const lock_guard lock(modules_mutex_);
  return others_.emplace_back(std::move(module)).get();
}

std::vector<device_access> launcher::resolve(std::span<const hpeAccess> accesses) const {
  std::vector<device_access> result;
  result.reserve(accesses.size());
  for (const hpeAccess& a : accesses) {
    HPE_REQUIRE(a.mode == HPE_IN || a.mode == HPE_OUT || a.mode == HPE_INOUT, HPE_ERROR_INVALID_ARGUMENT,
                "access mode {} is none of HPE_IN (1), HPE_OUT (2) and HPE_INOUT (3)", static_cast<int>(a.mode));
    const allocation found = memory_.require(a.address, a.size);
    const std::uint64_t begin = found.region->offset_of(a.address);
    const std::uint64_t in_object = static_cast<std::uint64_t>(static_cast<const std::byte*>(a.address) - found.base);
    const std::uint64_t bytes = a.size != 0 ? a.size : found.bytes - in_object;
    result.push_back({found.region, {begin, begin + bytes}, a.mode});
  }
  return result;
}

std::vector<device_access> launcher::all_regions() const {
  std::vector<device_access> result;
  for (std::uint32_t number = 1; number < regions_.limit(); ++number) {
    region& r = regions_.at(number);
    const lock_guard lock(r.mutex);
    if (r.alive) result.push_back({&r, r.whole(), HPE_INOUT, true});
  }
  return result;
}

std::vector<device_access> launcher::regions_in_reach(unsigned device) const {
  std::vector<device_access> result;
  result.reserve(regions_.limit());
  for (std::uint32_t number = 1; number < regions_.limit(); ++number) {
    region& r = regions_.at(number);
    const lock_guard lock(r.mutex);
    const device_access whole{&r, r.whole(), HPE_INOUT, true, true};
    if (r.alive && reaches(device, whole)) result.push_back(whole);
  }
  return result;
}

void launcher::leave_rest_mapped(std::vector<device_access>& all, std::span<const hpeAccess> named) const {
  const auto number = [](const device_access& access) { return access.region->id; };
  std::vector<device_access> sorted = resolve(named);
  std::ranges::sort(sorted, {}, number);
  for (device_access& each : all) {
    each.if_alive = !std::ranges::binary_search(sorted, each.region->id, {}, number);
    each.only_mapped = each.if_alive;
  }
}

bool launcher::reaches(unsigned device, const device_access& access) const {
  const region& r = *access.region;
  if (r.single_copy()) return true;
  const device::device& it = with_.devices.at(device);
  const auto reaches_home = [&](unsigned home) { return it.can_access(home) && !with_.devices.at(home).lost(); };
  // Fast path: if the device reaches every home of the region, the homes of the range do not matter.
  std::uint64_t rest = r.home_set();
  while (rest != 0 && reaches_home(static_cast<unsigned>(std::countr_zero(rest)))) rest &= rest - 1;
  if (rest == 0) return true;
  for (std::uint64_t at = access.range.begin; at < access.range.end; at = r.end_of_home(at, access.range.end))
    if (!reaches_home(r.home_of(at))) return false;
  return true;
}

device::stream& launcher::choose_stream(unsigned device, const point_set& after) {
  compute& c = *compute_[device];
  // Prefer a stream whose last command the work must wait for anyway; otherwise prefer an idle stream.
  for (device::stream* s : c.streams) {
    const timepoint last = s->last();
    const auto points = after.points();
    if (!last.none() && std::find(points.begin(), points.end(), last) != points.end()) return *s;
  }
  for (device::stream* s : c.streams)
    if (with_.devices.reached(s->last())) return *s;
  return *c.streams[c.next.fetch_add(1, std::memory_order_relaxed) % streams_per_device];
}

device::stream& launcher::team_stream(unsigned device) {
  compute& c = *compute_[device];
  if (c.teams == nullptr) c.teams = &with_.devices.at(device).create_stream(device::priority::launch);
  return *c.teams;
}

void launcher::require_there(unsigned device) const {
  HPE_REQUIRE(!with_.devices.at(device).lost(), HPE_ERROR_DEVICE_LOST, "device {} is lost and cannot run kernels",
              device);
}

std::uint64_t launcher::homes_in_reach(unsigned device) const {
  std::uint64_t homes = 0;
  for (unsigned home = 0; home < with_.devices.size(); ++home)
    if (with_.devices.at(device).can_access(home)) homes |= std::uint64_t{1} << home;
  return homes;
}

std::vector<device_access> launcher::accesses_of(unsigned device, const work_usage& usage, bool named_only) const {
  std::vector<device_access> accesses;
  if (usage.in_reach && !named_only)
    accesses = regions_in_reach(device);
  else if (usage.everything && !usage.in_reach)
    accesses = all_regions();
  else if (!usage.in_reach || usage.only_mapped)
    accesses = resolve(usage.accesses);
  if (usage.in_reach && usage.only_mapped && !named_only) leave_rest_mapped(accesses, usage.accesses);
  // With HPE_HOST_MEMORY, the bytes between the rows may be in the spill file only, so all bytes are brought in.
  if (!usage.in_reach && !usage.everything && !with_.host.limited())
    for (const written_rows& each : usage.rows) {
      accesses[each.access].mode = HPE_OUT;
      accesses[each.access].rows = &each.rows;
    }
  for (device_access& each : accesses) {
    if (usage.in_reach) each.range = each.region->whole();
    each.concurrent = usage.concurrent;
    each.unsure = usage.unsure && each.mode == HPE_INOUT;
  }
  return accesses;
}

// Returns whether work on this stream must wait for unfinished work of another timeline. (Earlier work of the same
// stream needs no wait.)
bool launcher::waits(const device::stream& stream, const point_set& after) const {
  const std::uint32_t own = stream.last().timeline;
  const auto points = after.points();
  return std::any_of(points.begin(), points.end(),
                     [&](timepoint p) { return p.timeline != own && !with_.devices.reached(p); });
}

template <class Command>
timepoint launcher::queue(unsigned device, const work_usage& usage, const Command& command, device::stream* on,
                          queued_beside* known) {
  require_there(device);
  // Regions that the device does not reach move to it in the same critical section, so that no other launch moves them
  // away before the work is queued.
  const auto move_here = [&](const device_access& access) {
    access.region->mutex.assert_held();
    if (!reaches(device, access)) memory_.move(*access.region, device);
  };
  const submission::memory memory = memory_for(usage);
  const auto queue_after = [&](submission& work, point_set& after) {
    for (const timepoint p : usage.after) after.add(p);
    device::stream& stream = on != nullptr ? *on : choose_stream(device, after);
    for (const timepoint p : after.points()) stream.wait(p);
    const timepoint end = command(work, stream, static_cast<const point_set&>(after));
    counters::add(count_.launches, 1);
    return end;
  };
  coherence::work_anywhere& all = regions_.anywhere();
  if (known != nullptr && !known->settled.empty() && known->settled_at == all.epoch() && !with_.room.is_short()) {
    with_.devices.at(device).await_room(on);
    submission work(with_, std::exchange(known->settled, {}), submission::settled);
    const auto is_there = [&](const device_access& access) {
      access.region->mutex.assert_held();
      return reaches(device, access);  // also checks whether a home is lost
    };
    if (known->settled_at == all.epoch() && std::ranges::all_of(work.accesses(), is_there)) {
      const timepoint end = work.submit([&](point_set& after) { return queue_after(work, after); });
      known->settled = work.take_accesses();
      return end;
    }
  }
  if (known != nullptr) *known = {};
  const bool is_anywhere = usage.in_reach && usage.concurrent;
  std::atomic<std::uint64_t>& settled = settled_[device][usage.only_mapped ? 1 : 0];
  const std::uint64_t settled_before = settled.load();
  const bool is_settled = is_anywhere && all.epoch() == settled_before;
  if (is_settled) try {
      with_.devices.at(device).await_room(on);
      submission work(with_, accesses_of(device, usage, true), {}, memory);
      if (const auto end = work.submit_anywhere(all, homes_in_reach(device), settled_before,
                                                [&](point_set& after) { return queue_after(work, after); })) {
        if (known != nullptr) known->settled_at = settled_before;
        return *end;
      }
    } catch (...) {
      // A part of the work may have run, and may have written any of these bytes.
      for (const device_access& each : accesses_of(device, usage)) {
        const lock_guard lock(each.region->mutex);
        each.region->resident.outdate(each.range);
      }
      throw;
    }
  if (is_anywhere) all.start();
  const std::uint64_t new_homes = all.new_homes();
  std::vector<device_access> accesses = accesses_of(device, usage);
  for (const device_access& each : accesses)
    if (!each.concurrent) announced_.wait_before(*each.region, each.range, each.mode != HPE_IN);
  with_.devices.at(device).await_room(on);
  submission work(with_, std::move(accesses), usage.in_reach ? submission::preparation() : move_here, memory,
                  !is_settled);
  point_set before;
  const timepoint end = work.submit([&](point_set& after) {
    if (is_anywhere) before = after;
    return queue_after(work, after);
  });
  if (is_anywhere) {
    // Work of the next calls of submit_anywhere must wait for the same work.
    work::record_or_wait(before.points(), with_.devices, [&] {
      for (const timepoint p : before.points()) all.note_named(homes_in_reach(device), p);
    });
    const std::uint64_t epoch = all.epoch();
    if (all.new_homes() == new_homes && work.leaves_all_settled(!usage.only_mapped)) settled = epoch;
  } else if (known != nullptr && work.leaves_all_settled(true)) {
    known->settled_at = all.epoch();
    if (usage.concurrent && usage.rows.empty()) known->settled = work.take_accesses();
  }
  return end;
}

timepoint launcher::launch(unsigned device, hpeKernel kernel, const device::shape& shape,
                           std::span<const std::byte> parameters, const work_usage& usage, launch_frame* around) {
  // The caller's parameters may lie in an hpe allocation, so they are read before any lock is taken.
  std::array<std::byte, 512> few;
  std::vector<std::byte> many;
  if (parameters.size() > few.size()) many.resize(parameters.size());
  const std::span own_parameters(many.empty() ? few.data() : many.data(), parameters.size());
  std::copy(parameters.begin(), parameters.end(), own_parameters.begin());
  return queue(device, usage, [&](submission& /*work*/, device::stream& stream, const point_set& /*after*/) {
    return queue_in(around, stream, [&] { return stream.launch(kernel->id, shape, own_parameters); });
  });
}

template <class Part, class Command>
void launcher::queue_together(std::span<const Part> parts, const std::string& name, std::vector<device_access> accesses,
                              submission::memory memory, const Command& command) {
  for (const Part& p : parts) require_there(p.device);
  const unsigned first = parts.front().device;
  const auto bring_into_reach = [&](const device_access& access) {
    const auto there = [&](const Part& p) { return reaches(p.device, access); };
    if (std::all_of(parts.begin(), parts.end(), there)) return;
    for (const Part& p : parts)
      HPE_REQUIRE(with_.devices.at(p.device).can_access(first), HPE_ERROR_NOT_SUPPORTED,
                  "kernel {} is launched on a team and uses {} bytes at {}, which not all devices of the team reach; "
                  "moving these bytes would not help, because device {} does not reach memory of device {}",
                  name, access.range.size(), static_cast<void*>(access.region->layout.base + access.range.begin),
                  p.device, first);
    access.region->mutex.assert_held();
    memory_.move(*access.region, first);
  };
  for (const device_access& each : accesses)
    if (!each.concurrent) announced_.wait_before(*each.region, each.range, each.mode != HPE_IN);
  for (const Part& p : parts) with_.devices.at(p.device).await_room(nullptr);
  submission work(with_, std::move(accesses), bring_into_reach, memory);
  work.submit_together([&](const point_set& after, std::vector<timepoint>& points) { command(work, after, points); });
  counters::add(count_.launches, parts.size());
}

void launcher::launch_team(std::span<const team_part> parts, hpeKernel kernel, std::span<const hpeAccess> accesses) {
  std::vector<std::vector<std::byte>> parameters;  // copied before any lock is taken, as in launch
  for (const team_part& p : parts) parameters.emplace_back(p.parameters.begin(), p.parameters.end());
  const auto queue_parts = [&](submission& /*work*/, const point_set& after, std::vector<timepoint>& points) {
    points.reserve(parts.size());
    const lock_guard lock(team_mutex_);
    for (const team_part& p : parts)
      for (const timepoint point : after.points()) team_stream(p.device).wait(point);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      device::shape shape = parts[i].shape;
      for (const team_part& p : parts) shape.team |= 1U << p.device;
      points.push_back(team_stream(parts[i].device).launch(kernel->id, shape, parameters[i]));
    }
  };
  queue_together(parts, kernel->name, resolve(accesses), submission::memory::needed, queue_parts);
}

std::vector<timepoint> launcher::launch_parts(std::span<const team_part> parts, hpeKernel kernel,
                                              const work_usage& usage) {
  std::vector<timepoint> queued;
  queued.reserve(parts.size());
  const auto queue_parts = [&](submission& /*work*/, const point_set& after, std::vector<timepoint>& points) {
    points.reserve(parts.size());
    for (const team_part& p : parts) {
      device::stream& stream = choose_stream(p.device, after);
      for (const timepoint point : after.points()) stream.wait(point);
      points.push_back(stream.launch(kernel->id, p.shape, p.parameters));
      queued.push_back(points.back());
    }
  };
  try {
    queue_together(parts, kernel->name, accesses_of(parts.front().device, usage), memory_for(usage), queue_parts);
  } catch (const std::exception& e) {
    const auto* const known = dynamic_cast<const error*>(&e);
    if (queued.empty() || (known != nullptr && known->status() == HPE_ERROR_DEVICE_LOST)) throw;
    // The caller must not conclude that nothing runs, and queue the launch in another way.
    HPE_THROW(HPE_ERROR_LAUNCH_FAILED, "{}",
              words_for_incomplete_launch(kernel->name, queued.size(), parts.size(), e.what()));
  }
  return queued;
}

void launcher::require_valid(unsigned device, const work_usage& usage) const {
  require_there(device);
  if (!usage.everything) static_cast<void>(resolve(usage.accesses));
}

timepoint launcher::record(unsigned device, const std::function<int(void*)>& function, const work_usage& usage,
                           launch_frame* around) {
  require_there(device);
  // CUDA inspects the memory of copies when it captures them, so the data must be on the device before the function is
  // called, and must stay there.
  class stay {
   public:
    stay() = default;
    stay(const stay&) = delete;
    stay& operator=(const stay&) = delete;
    ~stay() {
      for (region* r : there_) --r->acquired;
    }
    void add(region& r) {
      if (there_.insert(&r).second) ++r.acquired;
    }

   private:
    std::set<region*> there_;
  } held;
  with_.devices.at(device).await_room(nullptr);
  {
    const submission bring(with_, accesses_of(device, usage), [&](const device_access& access) {
      access.region->mutex.assert_held();
      if (!reaches(device, access)) memory_.move(*access.region, device);
      held.add(*access.region);
    });
  }
  const std::unique_ptr<device::recorded_work> recorded = with_.devices.at(device).record(called_for_hpe(function));
  const auto queue_graph = [&](submission& /*work*/, device::stream& stream, const point_set& /*after*/) {
    return queue_in(around, stream, [&] { return recorded->queue(); });
  };
  return queue(device, usage, queue_graph, &recorded->on());
}

timepoint launcher::enqueue(unsigned device, const std::function<int(void*)>& function, const work_usage& usage,
                            launch_frame* around) {
  return queue(device, usage, [&](submission& work, device::stream& stream, const point_set& /*after*/) {
    return queue_in(around, stream, [&] { return enqueue_in(work, stream, called_for_hpe(function)); });
  });
}

void launcher::enqueue_beside(unsigned device, device::stream& beside, const std::function<int(void*, bool)>& function,
                              const work_usage& usage, queued_beside& work) {
  const auto command = [&](submission& of, device::stream& stream, const point_set& after) {
    const bool must_wait = waits(stream, after);
    return enqueue_in(of, stream, [&](void* handle) { return function(handle, must_wait); });
  };
  work.end = queue(device, usage, command, &beside, &work);
}

void launcher::enqueue_parts_beside(std::span<const beside_part> parts,
                                    const std::function<int(std::size_t, void*, bool)>& function,
                                    const work_usage& usage) {
  const auto queue_parts = [&](submission& work, const point_set& after, std::vector<timepoint>& points) {
    points.reserve(parts.size());
    for (std::size_t n = 0; n < parts.size(); ++n) {
      device::stream& stream = *parts[n].beside;
      for (const timepoint point : after.points()) stream.wait(point);
      const bool must_wait = waits(stream, after);
      points.push_back(enqueue_in(work, stream, [&](void* handle) { return function(n, handle, must_wait); }));
    }
  };
  queue_together(parts, "of the program", accesses_of(parts.front().device, usage), memory_for(usage), queue_parts);
}

void launcher::add_last_points(unsigned device, point_set& points) const {
  for (const device::stream* s : compute_[device]->streams) points.add(s->last());
  if (const device::stream* const teams = compute_[device]->teams; teams != nullptr) points.add(teams->last());
}

}  // namespace hpe::core
