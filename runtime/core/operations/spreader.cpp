#include "runtime/core/operations/spreader.h"

#include <algorithm>
#include <cstring>

#include "hpe/spread.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/coherence/announcements.h"
#include "runtime/core/operations/parts_in_time.h"
#include "runtime/ptx/files/device_code.h"

namespace hpe::core {

using ptx::analysis::quantity;
using ptx::patch::grid_part;

namespace {

// Returns the parts of the devices that run at least one block.
std::vector<spreader::launch_part> cut_evenly_over(std::span<const unsigned> devices, const spread::dimension& grid) {
  const spread::cut even = spread::cut_evenly(grid, static_cast<std::uint32_t>(devices.size()));
  std::vector<spreader::launch_part> parts;
  for (std::size_t n = 0; n < even.parts.size(); ++n)
    if (even.parts[n].blocks() > 0) parts.push_back({devices[n], even.parts[n].first, even.parts[n].count, {}});
  return parts;
}

}  // namespace

spreader::spreader(device::device_set& devices, allocator& memory, copier& copies, launcher& kernels,
                   ptx_modules& modules, cut_method cut, bool zero_copy)
    : devices_(devices),
      memory_(memory),
      copies_(copies),
      launcher_(kernels),
      modules_(modules),
      cuts_evenly_(cut == cut_method::even),
      zero_copy_(zero_copy),
      replicas_(devices, memory, copies) {
  memory.when_short([this] { return replicas_.forget_all(); });
}

std::unique_ptr<spreader::spread_module> spreader::make(hpeModule module) {
  auto made = std::make_unique<spread_module>(modules_.program_of(module));
  std::string failure;
  if (const auto& texts = made->code.patched().texts; !texts.empty()) {
    try {
      made->module = modules_.load(texts);
    } catch (const error& e) {
      log(log_level::warn, "a module of PTX cannot be spread: {}", e.what());
      failure = fmt::format("its patched code cannot be loaded: {}", e.what());
    }
  }
  try {
    find_kernels(module, failure, *made);
  } catch (...) {
    if (made->module != nullptr) modules_.unload(made->module);
    throw;
  }
  return made;
}

void spreader::find_kernels(hpeModule module, const std::string& failure, spread_module& in) {
  for (const auto& [name, code] : in.code.kernels()) {
    spread_kernel& k = in.kernels[name];
    k.code = &code;
    k.obstacle = code.obstacle.empty() ? failure : code.obstacle;
    if ((code.patched.uses_variables || code.patched.uses_constants) && k.obstacle.empty() &&
        (!modules_.has_variables(module) || duplicates_.contains(module)))
      k.obstacle = "it uses variables of its program, and each GPU has its own copy of them";
    if (k.obstacle.empty()) k.in_parts = launcher_.find(in.module, name);
  }
}

spreader::spread_module& spreader::module_of(hpeModule module) {
  const lock_guard lock(mutex_);
  auto found = all_.find(module);
  if (found == all_.end()) {
    found = all_.try_emplace(module).first;
    try {
      found->second = make(module);
    } catch (...) {
      all_.erase(found);
      throw;
    }
  }
  return *found->second;
}

spreader::spread_kernel& spreader::find(hpeKernel kernel) { return module_of(kernel->module).kernels.at(kernel->name); }

hpeKernel spreader::find_in_file(const std::string& file, const std::string& name) {
  const lock_guard lock(mutex_);
  hpeKernel& kernel = of_files_[{file, name}];
  if (kernel != nullptr) return kernel;
  const ptx::device_code code = ptx::read_device_code(file);
  const auto holds_it = [&](const std::string& text) { return ptx::has_kernel(text, name); };
  for (const std::vector<std::string>& texts : code.modules) {
    if (std::none_of(texts.begin(), texts.end(), holds_it)) continue;
    hpeModule const module = modules_.load(texts);
    duplicates_.insert(module);
    // The kernels of one module share one loaded module.
    for (const auto& f : modules_.program_of(module)->functions)
      if (f->is_kernel && f->is_defined) of_files_[{file, f->name}] = launcher_.find(module, f->name);
    return of_files_[{file, name}];
  }
  HPE_THROW(HPE_ERROR_NOT_FOUND,
            "{} contains no PTX of the kernel {}; nvcc puts PTX into programs with -arch=compute_80, "
            "or -gencode arch=compute_80,code=compute_80",
            file, name);
}

const std::string& spreader::obstacle_of(hpeKernel kernel) {
  static_cast<void>(modules_.program_of(kernel->module));
  return find(kernel).obstacle;
}

void spreader::unload(hpeModule module) {
  decltype(all_)::node_type ending;
  {
    const lock_guard lock(mutex_);
    ending = all_.extract(module);
    if (ending.empty()) return;
    for (const auto& [name, kernel] : ending.mapped()->kernels)
      for (const auto& [devices, planner] : planners_) planner->forget(*kernel.code->model);
  }
  if (ending.mapped()->module == nullptr) return;
  try {
    modules_.unload(ending.mapped()->module);
  } catch (const std::bad_alloc&) {  // the program may try again
    const lock_guard lock(mutex_);
    all_.insert(std::move(ending));
    throw;
  }
}

spreader::usage spreader::usage_of(const spread_kernel& kernel, std::span<const std::byte> parameters) const {
  usage result;
  result.everything = kernel.code->model->writes_anywhere() || kernel.code->model->analysis().uses_other_memory;
  const ptx::analysis::kernel_analysis& analysis = kernel.code->model->analysis();
  for (const ptx::analysis::array_use& array : analysis.arrays) {
    const quantity* const base = array.base ? &analysis.walk->table().of(*array.base) : nullptr;
    result.has_atomics |= array.updates > 0;
    if (base != nullptr && base->what == quantity::kind::variable)
      continue;  // bring_variables() handles module variables
    if (base == nullptr || base->what != quantity::kind::parameter ||
        base->number + sizeof(void*) > parameters.size()) {
      result.everything = true;
      result.has_atomics_on_host |= array.updates > 0;
      continue;
    }
    const void* pointer = nullptr;
    std::memcpy(&pointer, parameters.data() + base->number, sizeof pointer);
    const allocation into = memory_.find(pointer);
    result.others |= into.region == nullptr && pointer != nullptr;
    if (into.region == nullptr) continue;
    result.has_atomics_on_host |= array.updates > 0 && into.region->layout.kind == coherence::region_kind::host;
    const bool only_read = array.writes == 0 && array.updates == 0;
    result.accesses.push_back({into.base, 0, only_read ? HPE_IN : HPE_INOUT});
  }
  return result;
}

std::string spreader::obstacle_of(const spread_kernel& kernel, const device::shape& shape,
                                  std::span<const unsigned> devices, const usage& used) const {
  if (!kernel.obstacle.empty()) return kernel.obstacle;
  if (shape.cooperative) return "its launch is cooperative, so its blocks may wait for each other";
  if (shape.asks_for_cluster()) return "its launch asks for clusters, whose blocks share memory of one device";
  if (devices.size() == 1) return devices_.size() == 1 ? "there is one device" : "one device was named";
  if (std::uint64_t{shape.grid[0]} * shape.grid[1] * shape.grid[2] == 1) return "its grid is one block";
  if (used.others) return "it uses memory that hpe did not allocate, which other devices might be unable to access";
  for (const unsigned d : devices) {
    for (const unsigned other : devices) {
      if (!devices_.at(d).can_access(other))
        return fmt::format("device {} does not reach the memory of device {}", d, other);
      if (used.has_atomics && !devices_.at(d).has_atomics(other))
        return fmt::format("device {} has no atomic operations on the memory of device {}", d, other);
    }
    if (used.has_atomics_on_host && !devices_.at(d).info().has_host_atomics)
      return fmt::format("device {} has no atomic operations on host memory, which the kernel may update", d);
  }
  return {};
}

launch_planner& spreader::planner_of(std::span<const unsigned> devices) {
  const lock_guard lock(mutex_);
  std::vector<unsigned> list(devices.begin(), devices.end());
  auto found = planners_.find(list);
  if (found == planners_.end())
    found = planners_.emplace(list, std::make_unique<launch_planner>(devices_, memory_, replicas_, list)).first;
  return *found->second;
}

spreader::result spreader::plan(const spread_kernel& kernel, std::span<const unsigned> devices,
                                const device::shape& shape, std::span<const std::byte> parameters, const usage& used) {
  result how;
  how.reason = obstacle_of(kernel, shape, devices, used);
  const spread::dimension grid{shape.grid[0], shape.grid[1], shape.grid[2]};
  if (!how.reason.empty()) {
    how.parts.push_back({devices.front(), {}, grid, {}});
  } else if (cuts_evenly_) {
    how.parts = cut_evenly_over(devices, grid);
  } else {
    auto planned = planner_of(devices).decide(
        *kernel.code->model,
        {grid, {shape.block[0], shape.block[1], shape.block[2]}, parameters.data(), parameters.size()});
    how.reason = std::move(planned.reason);
    how.holds = std::move(planned.holds);
    for (std::size_t n = 0; n < planned.parts.size(); ++n)
      if (planned.parts[n].blocks() > 0)
        how.parts.push_back(
            {devices[n], planned.parts[n].first, planned.parts[n].count, std::move(planned.replacing[n])});
  }
  return how;
}

spreader::result spreader::launch(std::span<const unsigned> devices, hpeKernel kernel, const device::shape& shape,
                                  std::span<const std::byte> parameters) {
  modules_.require_launchable(kernel, shape, parameters.size());
  const spread_kernel& k = find(kernel);
  const usage used = usage_of(k, parameters);
  try {
    result how = plan(k, devices, shape, parameters, used);
    if (how.parts.size() > 1) {
      how.finished = launch_parts(how.parts, devices.front(), kernel, shape, parameters);
      return how;
    }
    if (k.code->patched.uses_variables || k.code->patched.uses_constants) how.parts[0].device = devices.front();
    how.finished.reserve(1);
    how.finished.push_back(modules_.launch(how.parts[0].device, kernel, shape, parameters,
                                           {.accesses = used.accesses, .everything = used.everything}));
    return how;
  } catch (const error& e) {
    // Other work may use the memory between two parts. So hpe cuts only announced work into parts that run one after
    // the other: the program ensures that no conflicting work runs between these parts.
    if (e.status() != HPE_ERROR_OUT_OF_MEMORY || !coherence::this_announced_thread().at_work) throw;
    return launch_in_time(devices, kernel, shape, parameters, used, e.what());
  }
}

spreader::result spreader::launch_in_time(std::span<const unsigned> devices, hpeKernel kernel,
                                          const device::shape& shape, std::span<const std::byte> parameters,
                                          const usage& used, const std::string& refusal) {
  const spread_kernel& k = find(kernel);
  std::string obstacle = k.obstacle;
  if (shape.cooperative) obstacle = "it is cooperative, so its blocks may wait for each other";
  if (shape.asks_for_cluster()) obstacle = "it asks for clusters, whose blocks run together";
  if (used.everything) obstacle = "it may use all allocations";
  const spread::launch launch{{shape.grid[0], shape.grid[1], shape.grid[2]},
                              {shape.block[0], shape.block[1], shape.block[2]},
                              parameters.data(),
                              parameters.size()};
  std::vector<hpeAccess> variables;
  modules_.add_accesses(kernel->module, devices.front(), variables);
  if (hpeModule const patched = module_of(kernel->module).module; patched != nullptr)
    for (const unsigned device : devices) modules_.add_accesses(patched, device, variables);
  std::optional<zero_copy_trial::key> tried;
  if (zero_copy_ && !used.everything)
    tried = zero_copy_trial::key_of(kernel, {shape.grid[0], shape.grid[1], shape.grid[2]}, used.accesses, memory_);
  const auto with_zero_copy = [&] { return launch_with_zero_copy(devices, kernel, shape, parameters, used, {}); };
  if (auto done = trial_.try_zero_copy(tried, memory_, with_zero_copy)) return *std::move(done);
  result how;
  std::vector<part_in_time> all;
  try {
    all = cut_in_time(memory_, *k.code->model, launch, static_cast<std::uint32_t>(devices.size()), variables, obstacle,
                      refusal);
    if (all.size() == 1) trial_.stay_in_parts(tried);
  } catch (const error& e) {
    if (e.status() != HPE_ERROR_OUT_OF_MEMORY || !zero_copy_) throw;
    trial_.stay_in_parts(tried);
    return launch_with_zero_copy(devices, kernel, shape, parameters, used, e.what());
  }
  how.reason = fmt::format("in {} parts one after the other, whose memory fits: {}", all.size(), refusal);
  how.parts.push_back({devices.front(), {}, launch.grid, {}});
  how.finished.reserve(std::size(hpeSpread{}.work) + devices.size());
  if (all.size() == 1) {
    how.reason = "its arrays do not fit into device memory, but the bytes that it can touch fit on one device";
    how.finished.push_back(modules_.launch(devices.front(), kernel, shape, parameters,
                                           {.accesses = all.front().accesses, .rows = all.front().rows}));
    return how;
  }
  for (const part_in_time& each : all) {
    std::vector<launch_part> list;
    for (std::size_t n = 0; n < devices.size(); ++n)
      if (each.blocks[n].blocks() > 0) list.push_back({devices[n], each.blocks[n].first, each.blocks[n].count, {}});
    for (const timepoint p : queue_parts(list, devices.front(), kernel, shape, parameters,
                                         work_usage{.accesses = each.accesses, .rows = each.rows}))
      how.finished.push_back(p);
    if (list.size() > how.parts.size()) how.parts = std::move(list);
    // hpeSpread has space for only this many parts. Wait for the oldest part, and stop if it has failed.
    while (how.finished.size() > std::size(hpeSpread{}.work)) {
      const timepoint oldest = how.finished.front();
      work::wait_for(std::span(&oldest, 1), devices_);
      if (devices_.status_of(oldest)) {
        how.finished.resize(std::size(hpeSpread{}.work));
        return how;
      }
      how.finished.erase(how.finished.begin());
    }
  }
  return how;
}

bool spreader::may_share_zero_copy(const spread_kernel& kernel, const device::shape& shape,
                                   std::span<const unsigned> devices, const usage& used) const {
  if (used.everything || !obstacle_of(kernel, shape, devices, used).empty()) return false;
  return !used.has_atomics ||
         std::ranges::all_of(devices, [&](unsigned d) { return devices_.at(d).info().has_host_atomics; });
}

spreader::result spreader::launch_with_zero_copy(std::span<const unsigned> devices, hpeKernel kernel,
                                                 const device::shape& shape, std::span<const std::byte> parameters,
                                                 const usage& used, const std::string& refusal) {
  result how;
  const spread::dimension grid{shape.grid[0], shape.grid[1], shape.grid[2]};
  if (may_share_zero_copy(find(kernel), shape, devices, used)) how.parts = cut_evenly_over(devices, grid);
  const bool is_divided = how.parts.size() > 1;
  if (!is_divided) how.parts = {{devices.front(), {}, grid, {}}};
  how.reason = fmt::format("on {}, with the data that does not fit in host memory{}",
                           is_divided ? fmt::format("{} devices", how.parts.size()) : "one device",
                           refusal.empty() ? ", because this is faster than parts" : ": " + refusal);
  how.finished.reserve(how.parts.size());
  try {
    if (is_divided)
      how.finished = queue_parts(how.parts, devices.front(), kernel, shape, parameters,
                                 work_usage{.accesses = used.accesses, .zero_copy = true});
    else
      how.finished.push_back(
          modules_.launch(devices.front(), kernel, shape, parameters,
                          {.accesses = used.accesses, .everything = used.everything, .zero_copy = true}));
  } catch (const error& no_memory) {
    if (no_memory.status() != HPE_ERROR_OUT_OF_MEMORY) throw;
    HPE_THROW(HPE_ERROR_OUT_OF_MEMORY, "{}; {}", refusal, no_memory.what());
  }
  if (!refusal.empty()) tell_of_zero_copy(refusal);
  return how;
}

std::vector<timepoint> spreader::launch_parts(std::span<const launch_part> parts, unsigned first, hpeKernel kernel,
                                              const device::shape& shape, std::span<const std::byte> parameters) {
  return queue_parts(parts, first, kernel, shape, parameters, std::nullopt);
}

std::vector<timepoint> spreader::queue_parts(std::span<const launch_part> parts, unsigned first, hpeKernel kernel,
                                             const device::shape& shape, std::span<const std::byte> parameters,
                                             const std::optional<work_usage>& memory) {
  modules_.require_launchable(kernel, shape, parameters.size());
  spread_module& m = module_of(kernel->module);
  const spread_kernel& k = m.kernels.at(kernel->name);
  HPE_REQUIRE(k.obstacle.empty(), HPE_ERROR_NOT_SUPPORTED, "kernel {} runs on one device: {}", kernel->name,
              k.obstacle);
  HPE_REQUIRE(!shape.cooperative && !shape.asks_for_cluster(), HPE_ERROR_NOT_SUPPORTED,
              "kernel {} is launched in parts, which cannot be cooperative or have clusters", kernel->name);

  std::vector<std::vector<std::byte>> bytes;
  std::vector<team_part> launched;
  for (const launch_part& p : parts) {
    grid_part described;
    device::shape own = shape;
    for (unsigned axis = 0; axis < 3; ++axis) {
      HPE_REQUIRE(
          p.blocks[axis] > 0 && p.first[axis] < shape.grid[axis] && p.blocks[axis] <= shape.grid[axis] - p.first[axis],
          HPE_ERROR_INVALID_ARGUMENT, "a part of kernel {} has blocks {} to {} in dimension {}, where the grid has {}",
          kernel->name, p.first[axis], std::uint64_t{p.first[axis]} + p.blocks[axis], axis, shape.grid[axis]);
      described.first[axis] = p.first[axis];
      described.grid[axis] = shape.grid[axis];
      own.grid[axis] = p.blocks[axis];
    }
    auto& with_part = bytes.emplace_back(ptx::patch::with_part(k.code->patched, parameters, described));
    for (const launch_planner::replaced_pointer& r : p.replacing)
      std::memcpy(with_part.data() + r.offset, &r.pointer, sizeof r.pointer);
    launched.push_back({p.device, own, with_part});
  }
  // A part whose pointers were replaced uses copies of arrays instead of the program's arrays.
  usage used = memory ? usage() : usage_of(k, bytes.front());
  if (memory) used.accesses.assign(memory->accesses.begin(), memory->accesses.end());
  for (std::size_t n = 1; n < parts.size(); ++n)
    if (!parts[n].replacing.empty())
      for (const hpeAccess& a : usage_of(k, bytes[n]).accesses) used.accesses.push_back(a);
  const lock_guard lock(m.variables_mutex);  // another thread may bring variables of another device
  bring_variables(k, kernel->module, first, m, parts);
  if (k.code->patched.uses_variables) modules_.add_accesses(kernel->module, first, used.accesses);
  for (const launch_part& p : parts) modules_.add_accesses(m.module, p.device, used.accesses);
  work_usage all = memory.value_or(work_usage{.everything = used.everything});
  all.accesses = used.accesses;
  std::vector<timepoint> points = launcher_.launch_parts(launched, k.in_parts, all);
  modules_.record(m.module, points);
  modules_.record(kernel->module, points);
  return points;
}

void spreader::bring_variables(const spread_kernel& kernel, hpeModule from, unsigned device, spread_module& to,
                               std::span<const launch_part> parts) {
  if (kernel.code->patched.uses_variables && to.variables_of != static_cast<int>(device)) {
    for (const ptx::patch::variable_table& table : to.code.patched().tables) {
      std::vector<void*> addresses;
      for (const std::string& name : table.variables)
        addresses.push_back(modules_.find_variable(from, name, device).address);
      for (unsigned d = 0; d < devices_.size(); ++d) {
        if (devices_.at(d).lost()) continue;
        const auto at = modules_.find_variable(to.module, table.name, d);
        copies_.copy(at.address, addresses.data(), at.size);
      }
    }
    to.variables_of = static_cast<int>(device);
  }
  if (!kernel.code->patched.uses_constants) return;
  for (const std::string& name : to.code.patched().constants) {
    const auto original = modules_.find_variable(from, name, device);
    for (const launch_part& p : parts)
      copies_.copy(modules_.find_variable(to.module, name, p.device).address, original.address, original.size);
  }
}

}  // namespace hpe::core
