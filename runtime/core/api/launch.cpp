// The C interface: modules, kernels, launches.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/own_process.h"
#include "runtime/core/api/api_guard.h"
#include "runtime/core/api/soft_cuda.h"
#include "runtime/core/runtime.h"

using hpe::core::guarded;
using hpe::core::runtime;
using hpe::core::work_usage;

namespace {

void check_kernel(hpeKernel kernel, size_t parameter_size) {
  HPE_REQUIRE(kernel != nullptr, HPE_ERROR_INVALID_ARGUMENT, "a launch needs a kernel (hpeModuleGetKernel)");
  HPE_REQUIRE(parameter_size <= HPE_MAX_PARAMETERS, HPE_ERROR_INVALID_ARGUMENT,
              "the parameters of kernel {} have {} bytes; at most {} are possible", kernel->name, parameter_size,
              HPE_MAX_PARAMETERS);
}

std::span<const std::byte> parameters_of(hpeKernel kernel, const void* parameters, size_t size) {
  HPE_REQUIRE(parameters != nullptr || size == 0, HPE_ERROR_INVALID_ARGUMENT,
              "kernel {} is launched with {} bytes of parameters at a null pointer", kernel->name, size);
  return {static_cast<const std::byte*>(parameters), size};
}

std::span<const hpeAccess> accesses_of(hpeKernel kernel, const hpeAccess* accesses, size_t count) {
  return hpe::core::require_accesses("kernel " + std::string(kernel->name) + " is launched", accesses, count);
}

work_usage usage_of(const char* work, const hpeAccess* accesses, size_t count) {
  const bool everything = count == HPE_ALL;
  return {.accesses = hpe::core::require_accesses(work, accesses, everything ? 0 : count), .everything = everything};
}

void enqueue_checked(runtime& it, hpeEnqueueFunction function, const char* call, const work_usage& usage,
                     hpe::core::launch_checks::queue_function queue) {
  it.checks() == nullptr ? queue(nullptr) : it.checks()->run(function, call, usage, queue);
}

hpe::device::shape tiles_of(const hpeShape* shape) {
  hpe::device::shape tiles;
  for (int i = 0; i < 3 && shape != nullptr; ++i) {
    tiles.grid[i] = std::max(shape->grid[i], 1U);
    tiles.block[i] = std::max(shape->block[i], 1U);
  }
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  const std::uint64_t rows = std::uint64_t{tiles.grid[1]} * tiles.grid[2];
  HPE_REQUIRE(tiles.grid[0] <= most / rows, HPE_ERROR_INVALID_ARGUMENT,
              "a grid of {} x {} x {} has too many tiles; at most {} are possible", tiles.grid[0], tiles.grid[1],
              tiles.grid[2], most);
  return tiles;
}

std::string own_kernels(const std::string& option) {
  return option.empty() ? hpe::find_own_file("libhpe-kernels.so", {".", "../lib"}, HPE_ERROR_NOT_FOUND, "HPE_KERNELS")
                        : option;
}

}  // namespace

hpeStatus hpeModuleLoad(hpeModule* module, const char* path) {
  return guarded([&] {
    HPE_REQUIRE(module != nullptr, HPE_ERROR_INVALID_ARGUMENT, "hpeModuleLoad: the pointer for the module is null");
    HPE_REQUIRE(
        path == nullptr || *path != '\0', HPE_ERROR_INVALID_ARGUMENT,
        "hpeModuleLoad was given an empty path; pass the path of a file, or a null pointer for hpe's own kernels");
    auto& it = runtime::instance();
    *module = it.kernels().load(path != nullptr ? path : own_kernels(it.option().kernels));
  });
}

hpeStatus hpeModuleGetKernel(hpeKernel* kernel, hpeModule module, const char* name) {
  return guarded([&] {
    HPE_REQUIRE(kernel != nullptr && module != nullptr && name != nullptr, HPE_ERROR_INVALID_ARGUMENT,
                "hpeModuleGetKernel needs a pointer for the kernel, a module and a name");
    *kernel = runtime::instance().kernels().find(module, name);
  });
}

hpeStatus hpeEnqueue(int device, hpeEnqueueFunction function, void* argument, const hpeAccess* accesses, size_t count) {
  return guarded([&] {
    HPE_REQUIRE(function != nullptr, HPE_ERROR_INVALID_ARGUMENT, "hpeEnqueue: the function is null");
    auto& it = runtime::instance();
    const work_usage usage = usage_of("hpeEnqueue was called", accesses, count);
    const unsigned on = hpe::core::device_or_current(it, device);
    const bool is_soft = it.devices().at(on).info().kind == HPE_DEVICE_SOFT;
    if (const auto driver = is_soft ? hpe::core::soft_cuda::find() : std::nullopt) {
      it.kernels().require_valid(on, usage);
      it.synchronizes_also(&hpe::core::soft_cuda::wait);
      const std::uint64_t homes = usage.everything ? ~std::uint64_t{0} : 0;
      driver->enqueue(on, function, argument, homes, usage.accesses);  // soft devices' CUDA itself orders the work
    } else {
      enqueue_checked(it, function, "hpeEnqueue", usage, [&](hpe::core::launch_frame* around) {
        return it.kernels().record(
            on, [&](void* stream) { return function(stream, argument); }, usage, around);
      });
    }
  });
}

hpeStatus hpeEnqueueLocked(int device, hpeEnqueueFunction function, void* argument, const hpeAccess* accesses,
                           size_t count) {
  return guarded([&] {
    HPE_REQUIRE(function != nullptr, HPE_ERROR_INVALID_ARGUMENT, "hpeEnqueueLocked: the function is null");
    auto& it = runtime::instance();
    const auto call = [&](void* stream) {
      const hpe::core::inside_callback here;
      return function(stream, argument);
    };
    const work_usage usage = usage_of("hpeEnqueueLocked was called", accesses, count);
    const unsigned on = hpe::core::device_or_current(it, device);
    enqueue_checked(it, function, "hpeEnqueueLocked", usage,
                    [&](hpe::core::launch_frame* around) { return it.kernels().enqueue(on, call, usage, around); });
  });
}

hpeStatus hpeLaunch(int device, hpeKernel kernel, const hpeShape* shape, const void* parameters, size_t parameter_size,
                    const hpeAccess* accesses, size_t count) {
  return guarded([&] {
    check_kernel(kernel, parameter_size);
    const std::span bytes = parameters_of(kernel, parameters, parameter_size);
    const bool everything = count == HPE_ALL;
    const work_usage usage{.accesses = accesses_of(kernel, accesses, everything ? 0 : count), .everything = everything};
    auto& it = runtime::instance();
    const unsigned on = hpe::core::device_or_current(it, device);
    if (kernel->ptx != nullptr) {
      it.ptx().launch(on, kernel, tiles_of(shape), bytes, usage);
    } else {
      const auto queue = [&](hpe::core::launch_frame* around) {
        return it.kernels().launch(on, kernel, tiles_of(shape), bytes, usage, around);
      };
      const auto describe = [&] {
        return hpe::check::checked_operation{.what = "kernel " + kernel->name, .place = nullptr, .is_kernel = true};
      };
      it.checks() == nullptr ? queue(nullptr) : it.checks()->run(on, kernel, usage, describe, queue);
    }
  });
}

hpeStatus hpeLaunchTeam(const hpeTeamMember* members, size_t member_count, hpeKernel kernel, size_t parameter_size,
                        const hpeAccess* accesses, size_t count) {
  return guarded([&] {
    check_kernel(kernel, parameter_size);
    HPE_REQUIRE(members != nullptr && member_count != 0, HPE_ERROR_INVALID_ARGUMENT,
                "kernel {} is launched on a team without members", kernel->name);
    HPE_REQUIRE(count != HPE_ALL, HPE_ERROR_INVALID_ARGUMENT,
                "kernel {} is launched on a team with HPE_ALL; the launch of a team must name its accesses",
                kernel->name);
    HPE_REQUIRE(kernel->ptx == nullptr, HPE_ERROR_NOT_SUPPORTED,
                "kernel {} is a PTX kernel, but teams run kernels of shared objects only", kernel->name);
    auto& it = runtime::instance();
    std::vector<hpe::core::team_part> parts;
    for (const hpeTeamMember& m : std::span(members, member_count)) {
      const unsigned on = hpe::core::device_or_current(it, m.device);
      HPE_REQUIRE(std::none_of(parts.begin(), parts.end(), [on](const auto& p) { return p.device == on; }),
                  HPE_ERROR_INVALID_ARGUMENT, "kernel {} is launched on a team that has device {} twice", kernel->name,
                  on);
      parts.push_back({on, tiles_of(&m.shape), parameters_of(kernel, m.parameters, parameter_size)});
    }
    it.kernels().launch_team(parts, kernel, accesses_of(kernel, accesses, count));
  });
}
