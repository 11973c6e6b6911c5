#include "runtime/core/operations/ptx_modules.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "runtime/base/demangled.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/ptx/program/ptx_program.h"

namespace hpe::core {

namespace {

// CUDA's limits. They also apply to soft devices, so that programs that run on soft devices also run on GPUs.
constexpr std::uint32_t most_threads = 1024;
constexpr std::uint32_t most_shared = 227U << 10;

constexpr device::ptx_part all_parts[] = {device::ptx_part::global, device::ptx_part::constant,
                                          device::ptx_part::managed};
static_assert(std::size(all_parts) == device::ptx_part_count);

constexpr std::size_t index_of(device::ptx_part part) { return static_cast<std::size_t>(part); }

const loaded_ptx& require_ptx(hpeModule module) {
  HPE_REQUIRE(module->ptx != nullptr, HPE_ERROR_NOT_SUPPORTED, "the module of {} is not a PTX module", module->path);
  HPE_REQUIRE(module->ptx->on_devices != nullptr, HPE_ERROR_INVALID_ARGUMENT,
              "the module of PTX was unloaded (hpeModuleUnload)");
  return *module->ptx;
}

const device::ptx_kernel& require_ptx(hpeKernel kernel) {
  HPE_REQUIRE(kernel->module->ptx != nullptr, HPE_ERROR_NOT_SUPPORTED,
              "kernel {} is not a PTX kernel; kernels of shared objects are launched by hpeLaunch", kernel->name);
  static_cast<void>(require_ptx(kernel->module));
  return *kernel->ptx;
}

[[noreturn]] void refuse(const device::ptx_kernel& kernel, const std::string& why) {
  HPE_THROW(HPE_ERROR_INVALID_ARGUMENT, "kernel {} is launched with {}", kernel.name, why);
}

void check_cluster(const device::ptx_kernel& kernel, const device::shape& shape) {
  const auto& own = kernel.required_cluster;
  const bool has_own = own[0] != 0, asks = shape.asks_for_cluster();
  if (!has_own && !asks) {
    if (kernel.needs_cluster) refuse(kernel, "no clusters; it must be launched with clusters");
    return;
  }
  const auto* const sizes = asks ? shape.cluster : own.data();
  const std::string cluster = fmt::format("clusters of {} x {} x {} blocks", sizes[0], sizes[1], sizes[2]);
  if (has_own && !std::equal(own.begin(), own.end(), sizes))
    refuse(kernel, fmt::format("{}; it demands {} x {} x {}", cluster, own[0], own[1], own[2]));
  std::uint64_t blocks = 1;
  for (int i = 0; i < 3; ++i) {
    if (sizes[i] == 0 || shape.grid[i] % sizes[i] != 0)
      refuse(kernel, fmt::format("{}, which do not divide its {} blocks in dimension {}", cluster, shape.grid[i], i));
    blocks *= std::min(sizes[i], kernel.max_cluster + 1);
  }
  if (blocks > kernel.max_cluster)
    refuse(kernel, fmt::format("{}; {} blocks are possible", cluster, kernel.max_cluster));
}

void check(const device::ptx_kernel& kernel, const device::shape& shape, std::size_t parameter_bytes) {
  std::uint64_t threads = 1;
  for (int i = 0; i < 3; ++i) {
    if (shape.grid[i] == 0 || shape.grid[i] > ptx::most_blocks[i])
      refuse(kernel,
             fmt::format("{} blocks in dimension {}; 1 to {} are possible", shape.grid[i], i, ptx::most_blocks[i]));
    if (shape.block[i] == 0 || shape.block[i] > ptx::widest_block[i])
      refuse(kernel, fmt::format("{} threads of a block in dimension {}; 1 to {} are possible", shape.block[i], i,
                                 ptx::widest_block[i]));
    threads *= shape.block[i];
  }
  if (threads > std::min(kernel.max_threads, most_threads))
    refuse(kernel, fmt::format("{} threads in a block; at most {} are possible", threads,
                               std::min(kernel.max_threads, most_threads)));
  const auto& required = kernel.required_block;
  if (required[0] != 0 && !std::equal(required.begin(), required.end(), shape.block))
    refuse(kernel, fmt::format("blocks of {} x {} x {} threads; it demands {} x {} x {}", shape.block[0],
                               shape.block[1], shape.block[2], required[0], required[1], required[2]));
  if (shape.shared_bytes > most_shared || kernel.shared_bytes + shape.shared_bytes > most_shared)
    refuse(kernel,
           fmt::format("{} static and {} dynamic bytes of shared memory in a block; at most {} are possible together",
                       kernel.shared_bytes, shape.shared_bytes, most_shared));
  if (parameter_bytes < kernel.parameter_bytes)
    refuse(kernel, fmt::format("{} bytes of parameters; it has {}", parameter_bytes, kernel.parameter_bytes));
  check_cluster(kernel, shape);
}

}  // namespace

hpeModule ptx_modules::load(std::vector<std::string> texts, device::ptx_recording reads) {
  device::ptx_capability* const devices = devices_.ptx();
  HPE_REQUIRE(devices != nullptr, HPE_ERROR_NOT_SUPPORTED, "these devices cannot run modules of PTX");
  auto made = std::make_unique<hpeModule_st>();
  made->path = "PTX";
  made->ptx = std::make_unique<loaded_ptx>();
  made->ptx->on_devices = devices->load(std::move(texts), reads);
  made->id = made->ptx->on_devices->id();
  made->ptx->placed.resize(devices_.size());
  try {
    place_variables(*made);
  } catch (...) {
    free_variables(*made);
    throw;
  }
  return launcher_.keep(std::move(made));
}

void ptx_modules::place_variables(hpeModule_st& module) {
  device::device_ptx_module& ptx = *module.ptx->on_devices;
  std::byte* managed = nullptr;  // the managed variables; their home is the first device that is not lost
  for (unsigned d = 0; d < devices_.size(); ++d) {
    if (devices_.at(d).lost()) continue;
    loaded_ptx::variables& parts = module.ptx->placed[d];
    std::size_t needed = 0;
    for (const auto part : all_parts) needed += ptx.bytes_of(part);
    HPE_REQUIRE(needed <= devices_.at(d).info().memory_bytes, HPE_ERROR_OUT_OF_MEMORY,
                "the variables of a module of PTX need {} bytes on device {}, which has only {} (HPE_SOFT_MEMORY, "
                "HPE_DEVICE_MEMORY)",
                needed, d, devices_.at(d).info().memory_bytes);
    device::ptx_addresses addresses{};
    for (const auto part : all_parts) {
      std::byte*& at = parts[index_of(part)];
      const bool is_there = part == device::ptx_part::managed && managed != nullptr;
      if (const std::size_t bytes = ptx.bytes_of(part); bytes != 0)
        at = is_there ? managed : memory_.allocate(bytes, d);
      addresses[index_of(part)] = reinterpret_cast<std::uintptr_t>(at);
    }
    for (const device::ptx_contents& c : ptx.place(d, addresses)) {
      if (c.part == device::ptx_part::managed && managed != nullptr) continue;
      copies_.copy(parts[index_of(c.part)] + c.offset, c.bytes.data(), c.bytes.size());
    }
    managed = parts[index_of(device::ptx_part::managed)];
  }
}

void ptx_modules::free_part(std::byte* part) noexcept {
  // A call of free that fails has changed nothing. If memory was short only for a moment, a later call succeeds.
  constexpr int tries = 3;
  for (int n = 1; n <= tries; ++n) {
    try {
      return memory_.free(part);
    } catch (const std::exception& e) {
      if (n == tries) log(log_level::warn, "variables of a module of PTX were not freed: {}", e.what());
    }
  }
}

void ptx_modules::free_variables(hpeModule_st& module) noexcept {
  const std::byte* managed = nullptr;  // the managed part, which is the same on all devices
  for (const loaded_ptx::variables& parts : module.ptx->placed) {
    for (std::byte* const part : parts) {
      if (part == nullptr || part == managed) continue;
      if (part == parts[index_of(device::ptx_part::managed)]) managed = part;
      free_part(part);
    }
  }
  module.ptx->placed.clear();
}

void ptx_modules::unload(hpeModule module) {
  static_cast<void>(require_ptx(module));
  loaded_ptx& ptx = *module->ptx;
  coherence::point_set launches;
  std::unique_ptr<device::device_ptx_module> ending;
  {
    const lock_guard lock(ptx.mutex);
    launches = ptx.launches;
    ending = std::move(ptx.on_devices);
  }
  work::wait_for(launches.points(), devices_);
  free_variables(*module);
}

ptx_modules::variable ptx_modules::find_variable(hpeModule module, const std::string& name, unsigned device) const {
  const loaded_ptx& ptx = require_ptx(module);
  const auto& variables = ptx.on_devices->variables();
  const auto found = std::find_if(variables.begin(), variables.end(), [&](const auto& v) { return v.name == name; });
  HPE_REQUIRE(found != variables.end(), HPE_ERROR_NOT_FOUND,
              "the module of PTX has no variable \"{}\" in global or constant memory", name);
  std::byte* const part = ptx.placed[device][index_of(found->part)];
  HPE_REQUIRE(part != nullptr, HPE_ERROR_DEVICE_LOST, "device {} was lost before the module was loaded", device);
  return {part + found->offset, found->size};
}

hpeKernelInfo ptx_modules::describe(hpeKernel kernel) const {
  const device::ptx_kernel& k = require_ptx(kernel);
  const device::device_ptx_module& module = *kernel->module->ptx->on_devices;
  hpeKernelInfo info{};
  info.parameter_count = static_cast<std::uint32_t>(k.parameter_offsets.size());
  info.parameter_offsets = k.parameter_offsets.data();
  info.parameter_sizes = k.parameter_sizes.data();
  info.parameter_bytes = k.parameter_bytes;
  info.shared_bytes = k.shared_bytes;
  info.local_bytes = k.local_bytes;
  info.constant_bytes = static_cast<std::uint32_t>(module.bytes_of(device::ptx_part::constant));
  info.max_threads = k.max_threads;
  std::copy(k.required_block.begin(), k.required_block.end(), info.required_block);
  info.architecture = static_cast<std::int32_t>(module.architecture());
  std::copy(k.required_cluster.begin(), k.required_cluster.end(), info.required_cluster);
  info.max_cluster = k.max_cluster;
  info.needs_cluster = k.needs_cluster ? 1 : 0;
  return info;
}

timepoint ptx_modules::launch(unsigned device, hpeKernel kernel, const device::shape& shape,
                              std::span<const std::byte> parameters, work_usage usage) {
  const device::ptx_kernel& k = require_ptx(kernel);
  check(k, shape, parameters.size());

  std::vector<hpeAccess> accesses;
  const loaded_ptx::variables& placed = kernel->module->ptx->placed[device];
  if (std::any_of(placed.begin(), placed.end(), [](const std::byte* part) { return part != nullptr; })) {
    accesses.assign(usage.accesses.begin(), usage.accesses.end());
    add_accesses(kernel->module, device, accesses);
    usage.accesses = accesses;
  }

  const auto queue = [&](launch_frame* around) {
    const timepoint point = launcher_.launch(device, kernel, shape, parameters.first(k.parameter_bytes), usage, around);
    record(kernel->module, std::span(&point, 1));
    return point;
  };
  if (checks_ == nullptr) return queue(nullptr);
  return checks_->run(
      device, kernel, usage, [&] { return describe_launch(kernel, parameters); }, queue);
}

check::checked_operation ptx_modules::describe_launch(hpeKernel kernel, std::span<const std::byte> parameters) const {
  const device::ptx_kernel& k = *kernel->ptx;
  check::checked_operation result{.what = fmt::format("kernel {}", demangled(k.name)),
                                  .place = nullptr,
                                  .is_kernel = true,
                                  .pointers = check::pointers_in(k.parameter_offsets, k.parameter_sizes, parameters)};
  result.source_of = [this, kernel](std::uint32_t site, check::use how) {
    check::site_places places;
    visit_sites(kernel, [&](std::uint8_t number, ptx::recorded_use use, const std::string& place) {
      places.add(number, static_cast<check::use>(use), place);
    });
    return places.find(site, how);
  };
  return result;
}

std::shared_ptr<const ptx::program> ptx_modules::program_of(hpeModule module) const {
  return require_ptx(module).on_devices->program();
}

bool ptx_modules::has_variables(hpeModule module) const { return !require_ptx(module).on_devices->variables().empty(); }

void ptx_modules::require_launchable(hpeKernel kernel, const device::shape& shape, std::size_t parameter_bytes) const {
  check(require_ptx(kernel), shape, parameter_bytes);
}

void ptx_modules::add_accesses(hpeModule module, unsigned device, std::vector<hpeAccess>& to) const {
  const loaded_ptx& ptx = *module->ptx;
  for (const auto part : all_parts) {
    const std::byte* const at = ptx.placed[device][index_of(part)];
    const hpeAccessMode mode = part == device::ptx_part::constant ? HPE_IN : HPE_INOUT;
    if (at != nullptr) to.push_back({at, ptx.on_devices->bytes_of(part), mode});
  }
}

void ptx_modules::record(hpeModule module, std::span<const timepoint> launches) noexcept {
  loaded_ptx& ptx = *module->ptx;
  work::record_or_wait(launches, devices_, [&] {
    const lock_guard lock(ptx.mutex);
    for (const timepoint p : launches) ptx.launches.add(p);
  });
}

bool ptx_modules::visit_sites(hpeKernel kernel, site_function visit) const {
  const device::ptx_kernel& k = require_ptx(kernel);
  const auto program = kernel->module->ptx->on_devices->program();
  const ptx::function* const own = program->find_kernel(k.name);
  const std::vector<ptx::access_site> sites = ptx::find_access_sites(*program);
  const auto visit_those = [&](const auto& are_wanted) {
    for (const ptx::access_site& s : sites) {
      if (!are_wanted(*s.in)) continue;
      const std::string place = s.what->source_line != 0
                                    ? fmt::format("{}:{}", program->files[s.what->source_file], s.what->source_line)
                                    : fmt::format("PTX line {}, '{}'", s.what->line, program->text_of(*s.in, *s.what));
      visit(s.number, s.use, place);
    }
  };
  visit_those([&](const ptx::function& f) { return &f == own; });
  visit_those([&](const ptx::function& f) { return !f.is_kernel; });
  return ptx::writes_unrecorded(*program);
}

void ptx_modules::write_output() {
  device::ptx_capability* const ptx = devices_.ptx();
  if (ptx == nullptr) return;  // the CUDA driver itself writes the output of kernels
  const lock_guard lock(output_);
  for (const device::printed& what : ptx->take_output())
    std::fwrite(what.text.data(), 1, what.text.size(), what.is_error ? stderr : stdout);
}

}  // namespace hpe::core
