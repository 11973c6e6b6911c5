// The C interface: modules of PTX.

#include "hpe/ptx.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "hpe/check.h"
#include "runtime/core/api/api_guard.h"
#include "runtime/core/runtime.h"

using hpe::core::guarded;
using hpe::core::runtime;

namespace {

hpe::timepoint point_of(hpeWork work) { return {work.line, work.position}; }

hpe::timepoint launch(int device, hpeKernel kernel, const hpeGrid* shape, const void* parameters, size_t parameter_size,
                      const hpe::core::work_usage& usage) {
  HPE_REQUIRE(kernel != nullptr && shape != nullptr, HPE_ERROR_INVALID_ARGUMENT,
              "a launch needs a kernel (hpeModuleGetKernel) and a shape");
  HPE_REQUIRE(parameters != nullptr || parameter_size == 0, HPE_ERROR_INVALID_ARGUMENT,
              "kernel {} is launched with {} bytes of parameters at a null pointer", kernel->name, parameter_size);
  auto& it = runtime::instance();
  return it.ptx().launch(hpe::core::device_or_current(it, device), kernel, hpe::core::blocks_of(*shape),
                         {static_cast<const std::byte*>(parameters), parameter_size}, usage);
}

void load(hpeModule* module, const char* const* texts, size_t count, hpe::device::ptx_recording reads) {
  HPE_REQUIRE(module != nullptr, HPE_ERROR_INVALID_ARGUMENT, "hpeModuleLoadPtx: the pointer for the module is null");
  HPE_REQUIRE(texts != nullptr && count != 0, HPE_ERROR_INVALID_ARGUMENT, "hpeModuleLoadPtx needs at least one text");
  std::vector<std::string> copies;
  for (size_t n = 0; n < count; ++n) {
    HPE_REQUIRE(texts[n] != nullptr, HPE_ERROR_INVALID_ARGUMENT, "text {} of hpeModuleLoadPtx is a null pointer", n);
    copies.emplace_back(texts[n]);
  }
  auto& it = runtime::instance();
  *module = it.ptx().load(std::move(copies), reads);
  it.write_output_at_exit();
}

}  // namespace

hpe::device::shape hpe::core::blocks_of(const hpeGrid& grid) {
  device::shape blocks;
  std::copy(std::begin(grid.grid), std::end(grid.grid), blocks.grid);
  std::copy(std::begin(grid.block), std::end(grid.block), blocks.block);
  std::copy(std::begin(grid.cluster), std::end(grid.cluster), blocks.cluster);
  blocks.shared_bytes = grid.shared_bytes;
  blocks.cooperative = grid.cooperative != 0;
  return blocks;
}

hpeStatus hpeModuleLoadPtx(hpeModule* module, const char* const* texts, size_t count) {
  return guarded([&] { load(module, texts, count, hpe::device::ptx_recording::first_reads); });
}

hpeStatus hpeModuleLoadRecorded(hpeModule* module, const char* const* texts, size_t count) {
  return guarded([&] { load(module, texts, count, hpe::device::ptx_recording::all_reads); });
}

hpeStatus hpeModuleUnload(hpeModule module) {
  return guarded([&] {
    HPE_REQUIRE(module != nullptr, HPE_ERROR_INVALID_ARGUMENT, "hpeModuleUnload: the module is null");
    runtime::instance().spread().unload(module);
    runtime::instance().ptx().unload(module);
  });
}

hpeStatus hpeModuleGetVariable(void** address, size_t* size, hpeModule module, const char* name, int device) {
  return guarded([&] {
    HPE_REQUIRE(module != nullptr && name != nullptr, HPE_ERROR_INVALID_ARGUMENT,
                "hpeModuleGetVariable needs a module and a name");
    auto& it = runtime::instance();
    const auto found = it.ptx().find_variable(module, name, hpe::core::device_or_current(it, device));
    if (address != nullptr) *address = found.address;
    if (size != nullptr) *size = found.size;
  });
}

hpeStatus hpeKernelGetInfo(hpeKernel kernel, hpeKernelInfo* info) {
  return guarded([&] {
    HPE_REQUIRE(kernel != nullptr && info != nullptr, HPE_ERROR_INVALID_ARGUMENT,
                "hpeKernelGetInfo needs a kernel and a pointer for its description");
    hpe::core::give_answer(info, runtime::instance().ptx().describe(kernel), "hpeKernelGetInfo");
  });
}

hpeStatus hpeLaunchGrid(int device, hpeKernel kernel, const hpeGrid* shape, const void* parameters,
                        size_t parameter_size, const hpeAccess* accesses, size_t count, hpeWork* work) {
  return guarded([&] {
    const bool everything = count == HPE_ALL;
    const auto named = hpe::core::require_accesses("a kernel is launched", accesses, everything ? 0 : count);
    const hpe::timepoint point =
        launch(device, kernel, shape, parameters, parameter_size, {.accesses = named, .everything = everything});
    if (work != nullptr) *work = {point.value, point.timeline, 0};
  });
}

hpeStatus hpeLaunchPacked(const hpePackedLaunch* packed) {
  return guarded([&] {
    HPE_REQUIRE(packed != nullptr, HPE_ERROR_INVALID_ARGUMENT, "hpeLaunchPacked: the launch is null");
    HPE_REQUIRE(packed->parameter_size <= hpe::device::most_parameters, HPE_ERROR_INVALID_ARGUMENT,
                "a kernel is launched with {} bytes of parameters; at most {} are possible", packed->parameter_size,
                hpe::device::most_parameters);
    const auto* const parameters = reinterpret_cast<const std::byte*>(packed + 1);
    const std::size_t units = (packed->parameter_size + alignof(hpeAccess) - 1) / alignof(hpeAccess);
    const auto* const accesses = reinterpret_cast<const hpeAccess*>(parameters + units * alignof(hpeAccess));
    const auto named = hpe::core::require_accesses("a kernel is launched", accesses, packed->access_count);
    launch(packed->device, packed->kernel, &packed->shape, parameters, packed->parameter_size, {.accesses = named});
  });
}

hpeStatus hpeLaunchGridAfter(int device, hpeKernel kernel, const hpeGrid* shape, const void* parameters,
                             size_t parameter_size, const hpeWork* after, size_t count, hpeWork* work) {
  return guarded([&] {
    HPE_REQUIRE(after != nullptr || count == 0, HPE_ERROR_INVALID_ARGUMENT,
                "the list of the {} pieces of work after which a kernel is launched is a null pointer", count);
    std::vector<hpe::timepoint> points;
    for (size_t n = 0; n < count; ++n) points.push_back(point_of(after[n]));
    const hpe::timepoint point = launch(device, kernel, shape, parameters, parameter_size,
                                        {.in_reach = true, .concurrent = true, .after = points});
    if (work != nullptr) *work = {point.value, point.timeline, 0};
  });
}

hpeStatus hpeWorkWait(hpeWork work, hpeFault* fault) {
  return guarded([&] {
    if (fault != nullptr) *fault = HPE_FAULT_NONE;
    if (const auto failure = runtime::instance().wait(point_of(work))) {
      const hpe::device::ptx_capability* const ptx = runtime::instance().devices().ptx();
      if (fault != nullptr && ptx != nullptr) *fault = ptx->fault_of(point_of(work));
      throw *failure;
    }
  });
}

hpeStatus hpeWorkQuery(hpeWork work, int* done) {
  return guarded([&] {
    HPE_REQUIRE(done != nullptr, HPE_ERROR_INVALID_ARGUMENT, "hpeWorkQuery: the pointer for the answer is null");
    *done = runtime::instance().devices().reached(point_of(work)) ? 1 : 0;
  });
}
