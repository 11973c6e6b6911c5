// The functions for launches, and the queries that take a launch configuration.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/device/device_table.h"
#include "interpose/soft/cudart/module/kernel_launches.h"
#include "interpose/soft/cudart/module/launch_attributes.h"
#include "interpose/soft/cudart/module/module_table.h"
#include "interpose/soft/cudart/stream/cudart_stream.h"
#include "interpose/soft/cudart/stream/operations.h"
#include "interpose/soft/libcuda/call.h"

using namespace hpe::libcuda;
using hpe::cudart::check;
using hpe::cudart::launch_attributes;
using hpe::cudart::process;
using hpe::cudart::require;

namespace {

static_assert(sizeof(CUlaunchAttribute) == sizeof(cudaLaunchAttribute));

/// Converts a launch configuration to the runtime's structure. The result points to the program's attributes, which
/// have the same layout in both APIs.
cudaLaunchConfig_t config_of(const CUlaunchConfig* from) {
  const CUlaunchConfig& it = given(from);
  cudaLaunchConfig_t to{};
  to.gridDim = {it.gridDimX, it.gridDimY, it.gridDimZ};
  to.blockDim = {it.blockDimX, it.blockDimY, it.blockDimZ};
  to.dynamicSmemBytes = it.sharedMemBytes;
  to.stream = it.hStream;
  to.attrs = reinterpret_cast<cudaLaunchAttribute*>(it.attrs);
  to.numAttrs = it.numAttrs;
  return to;
}

/// Launches a kernel. The arguments are either in `arguments` (kernelParams) or, packed by the program itself, in
/// `extra`.
cudaError_t launch(CUfunction function, const cudaLaunchConfig_t& config, launch_attributes attributes,
                   void** arguments, void** extra) {
  require(arguments == nullptr || extra == nullptr, cudaErrorInvalidValue);
  cudaKernelNodeParams parameters{};
  parameters.func = function;
  parameters.gridDim = config.gridDim;
  parameters.blockDim = config.blockDim;
  parameters.sharedMemBytes = static_cast<unsigned>(config.dynamicSmemBytes);
  parameters.kernelParams = arguments;
  parameters.extra = extra;
  const auto where = process().find_stream(config.stream);
  auto made = std::make_shared<hpe::cudart::kernel_operation>();
  check(made->take(parameters, where->device()));
  made->attributes = std::move(attributes);
  return submit(*where, std::move(made));
}

/// Chooses the block size with which the largest number of threads runs on a multiprocessor at once. If several block
/// sizes reach this number, chooses the largest of them.
void choose_block_size(CUfunction function, int* grid, int* block, CUoccupancyB2DSize bytes_of_block, std::size_t bytes,
                       int limit) {
  require(grid != nullptr && block != nullptr, cudaErrorInvalidValue);
  const auto what = process().modules().find_kernel(function);
  const int device = process().current_device();
  const cudaDeviceProp& properties = process().devices().properties(device);
  int most = std::min(static_cast<int>(what->info().max_threads), properties.maxThreadsPerBlock);
  if (limit > 0) most = std::min(most, limit);
  int most_threads = 0;
  for (int size = most; size > 0; size = (size - 1) / properties.warpSize * properties.warpSize) {
    const std::size_t shared = bytes_of_block != nullptr ? bytes_of_block(size) : bytes;
    const int blocks = blocks_per_multiprocessor(*what, device, size, shared);
    if (blocks * size <= most_threads) continue;
    most_threads = blocks * size;
    *block = size;
    *grid = blocks * properties.multiProcessorCount;
  }
  require(most_threads > 0, cudaErrorInvalidValue);
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                CUstream stream, void** arguments, void** extra) {
  return in_context("cuLaunchKernel", [&] {
    const CUlaunchConfig config{grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, nullptr, 0};
    return launch(function, config_of(&config), {}, arguments, extra);
  });
}

CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** arguments, void** extra) {
  return in_context("cuLaunchKernelEx", [&] {
    const cudaLaunchConfig_t same = config_of(config);
    return launch(function, same, launch_attributes::of(&same), arguments, extra);
  });
}

CUresult CUDAAPI cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                           unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                           CUstream stream, void** arguments) {
  return in_context("cuLaunchCooperativeKernel", [&] {
    const CUlaunchConfig config{grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, nullptr, 0};
    return launch(function, config_of(&config), launch_attributes::of_cooperative_launch(), arguments, nullptr);
  });
}

/// Each grid is a separate cooperative launch. Kernels that wait for other devices (this_multi_grid) are refused when
/// they are loaded.
CUresult CUDAAPI cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* list, unsigned count, unsigned flags) {
  return in_context("cuLaunchCooperativeKernelMultiDevice", [&] {
    require(list != nullptr, cudaErrorInvalidValue);
    std::vector<cudaStream_t> streams;
    for (unsigned i = 0; i < count; ++i) streams.push_back(list[i].hStream);
    hpe::cudart::launch_on_devices(streams, flags, [&](std::size_t i) {
      const CUDA_LAUNCH_PARAMS& it = list[i];
      const CUlaunchConfig config{it.gridDimX,  it.gridDimY,       it.gridDimZ, it.blockDimX, it.blockDimY,
                                  it.blockDimZ, it.sharedMemBytes, it.hStream,  nullptr,      0};
      check(launch(it.function, config_of(&config), launch_attributes::of_cooperative_launch(), it.kernelParams,
                   nullptr));
    });
  });
}

CUresult CUDAAPI cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction function,
                                                  CUoccupancyB2DSize bytes_of_block, std::size_t bytes, int limit) {
  return in_context("cuOccupancyMaxPotentialBlockSize",
                    [&] { choose_block_size(function, grid, block, bytes_of_block, bytes, limit); });
}

CUresult CUDAAPI cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, CUfunction function,
                                                           CUoccupancyB2DSize bytes_of_block, std::size_t bytes,
                                                           int limit, unsigned /*flags*/) {
  return in_context("cuOccupancyMaxPotentialBlockSizeWithFlags",
                    [&] { choose_block_size(function, grid, block, bytes_of_block, bytes, limit); });
}

CUresult CUDAAPI cuOccupancyMaxPotentialClusterSize(int* size, CUfunction function, const CUlaunchConfig* config) {
  return in_context("cuOccupancyMaxPotentialClusterSize", [&] {
    const cudaLaunchConfig_t same = config_of(config);
    return cudaOccupancyMaxPotentialClusterSize(size, static_cast<const void*>(function), &same);
  });
}

CUresult CUDAAPI cuOccupancyMaxActiveClusters(int* clusters, CUfunction function, const CUlaunchConfig* config) {
  return in_context("cuOccupancyMaxActiveClusters", [&] {
    const cudaLaunchConfig_t same = config_of(config);
    return cudaOccupancyMaxActiveClusters(clusters, static_cast<const void*>(function), &same);
  });
}
}
