// The C interface: launches over several devices.

#include "hpe/spread.h"

#include <dlfcn.h>
#include <sys/auxv.h>

#include <algorithm>
#include <cstring>

#include "runtime/core/api/api_guard.h"
#include "runtime/core/runtime.h"

using hpe::core::guarded;
using hpe::core::runtime;
using hpe::core::spreader;

namespace {

std::span<const std::byte> parameters_of(hpeKernel kernel, const hpeGrid* shape, const void* parameters, size_t size) {
  HPE_REQUIRE(kernel != nullptr && shape != nullptr, HPE_ERROR_INVALID_ARGUMENT,
              "a launch needs a kernel (hpeModuleGetKernel) and a shape");
  HPE_REQUIRE(parameters != nullptr || size == 0, HPE_ERROR_INVALID_ARGUMENT,
              "kernel {} is launched with {} bytes of parameters at a null pointer", kernel->name, size);
  return {static_cast<const std::byte*>(parameters), size};
}

std::vector<unsigned> devices_of(runtime& it, const int* devices, size_t count) {
  std::vector<unsigned> result;
  if (devices == nullptr) {
    for (unsigned d = 0; d < it.devices().size(); ++d)
      if (!it.devices().at(d).lost()) result.push_back(d);
    if (result.empty()) result.push_back(0);  // the launch then reports that device 0 is lost
    return result;
  }
  HPE_REQUIRE(count != 0, HPE_ERROR_INVALID_ARGUMENT, "a launch over several devices names no device");
  for (const int d : std::span(devices, count)) {
    const unsigned device = hpe::core::device_or_current(it, d);
    HPE_REQUIRE(std::find(result.begin(), result.end(), device) == result.end(), HPE_ERROR_INVALID_ARGUMENT,
                "a launch over several devices names device {} twice", device);
    result.push_back(device);
  }
  return result;
}

}  // namespace

hpeStatus hpeKernelGetObstacle(hpeKernel kernel, const char** reason) {
  return guarded([&] {
    HPE_REQUIRE(kernel != nullptr && reason != nullptr, HPE_ERROR_INVALID_ARGUMENT,
                "hpeKernelGetObstacle needs a kernel and a pointer for its answer");
    const std::string& found = runtime::instance().spread().obstacle_of(kernel);
    *reason = found.empty() ? nullptr : found.c_str();
  });
}

hpeStatus hpeKernelOfProgram(hpeKernel* kernel, const void* function, const char* name) {
  return guarded([&] {
    HPE_REQUIRE(kernel != nullptr && function != nullptr && name != nullptr, HPE_ERROR_INVALID_ARGUMENT,
                "hpeKernelOfProgram needs a pointer for its answer, a function and a name");
    Dl_info file{};
    HPE_REQUIRE(::dladdr(function, &file) != 0 && file.dli_fname != nullptr, HPE_ERROR_NOT_FOUND,
                "the function of kernel {} is in no program or library that is loaded", name);
    // The name of the program itself may be relative to a folder that is no longer the current folder.
    auto* const program = reinterpret_cast<void*>(::getauxval(AT_PHDR));  // NOLINT(performance-no-int-to-ptr)
    Dl_info own{};
    const bool in_program = ::dladdr(program, &own) != 0 && own.dli_fbase == file.dli_fbase;
    *kernel = runtime::instance().spread().find_in_file(in_program ? "/proc/self/exe" : file.dli_fname, name);
  });
}

hpeStatus hpeLaunchOver(const int* devices, size_t device_count, hpeKernel kernel, const hpeGrid* shape,
                        const void* parameters, size_t parameter_size, hpeSpread* how) {
  return guarded([&] {
    const auto bytes = parameters_of(kernel, shape, parameters, parameter_size);
    auto& it = runtime::instance();
    const auto result =
        it.spread().launch(devices_of(it, devices, device_count), kernel, hpe::core::blocks_of(*shape), bytes);
    if (how == nullptr) return;
    hpeSpread answer{};
    answer.parts = static_cast<std::uint32_t>(result.parts.size());
    result.reason.copy(answer.reason, sizeof answer.reason - 1);
    for (std::size_t n = 0; n < std::min(result.finished.size(), std::size(answer.work)); ++n)
      answer.work[n] = {result.finished[n].value, result.finished[n].timeline, 0};
    hpe::core::give_answer(how, answer, "hpeLaunchOver");
  });
}

hpeStatus hpeLaunchParts(const hpePart* parts, size_t part_count, hpeKernel kernel, const hpeGrid* shape,
                         const void* parameters, size_t parameter_size) {
  return guarded([&] {
    const auto bytes = parameters_of(kernel, shape, parameters, parameter_size);
    HPE_REQUIRE(parts != nullptr && part_count != 0, HPE_ERROR_INVALID_ARGUMENT,
                "kernel {} is launched in parts, but the list of its parts is empty", kernel->name);
    auto& it = runtime::instance();
    std::vector<spreader::launch_part> list;
    for (const hpePart& p : std::span(parts, part_count)) {
      spreader::launch_part& made = list.emplace_back();
      made.device = hpe::core::device_or_current(it, p.device);
      std::copy(std::begin(p.first), std::end(p.first), made.first.begin());
      std::copy(std::begin(p.blocks), std::end(p.blocks), made.blocks.begin());
    }
    it.spread().launch_parts(list, list.front().device, kernel, hpe::core::blocks_of(*shape), bytes);
  });
}
