// The program's call checks a launch and copies its arguments; the stream's thread launches the kernel and waits for
// its end. By default, a launch declares accesses to all CUDA memory that its device may use, because hpe does not know
// in advance which pointers a kernel will use. A kernel may use memory of hpeMalloc only if an argument points to it.

#include "interpose/soft/cudart/module/kernel_launches.h"

#include <cuda.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "interpose/soft/cudart/check/checked_memory.h"
#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/device/device_table.h"
#include "interpose/soft/cudart/graph/graph_operations.h"
#include "interpose/soft/cudart/module/cluster.h"
#include "interpose/soft/cudart/module/module_table.h"
#include "interpose/soft/cudart/spread/soft_spreading.h"
#include "interpose/soft/cudart/stream/capture.h"
#include "interpose/soft/cudart/stream/event.h"
#include "interpose/soft/cudart/stream/operations.h"
#include "runtime/base/box.h"

namespace hpe::cudart {

namespace {

// The blocks of a cooperative launch take turns on the threads of a soft device, so soft devices need no limit for the
// number of blocks. The limit is that of a large GPU, because programs may expect a limit.
constexpr int multiprocessors_of_a_gpu = 132;

bool is_within(dim3 shape, const int (&most)[3]) {
  return shape.x > 0 && shape.y > 0 && shape.z > 0 && shape.x <= static_cast<unsigned>(most[0]) &&
         shape.y <= static_cast<unsigned>(most[1]) && shape.z <= static_cast<unsigned>(most[2]);
}

/// Copies arguments that the program has packed itself; `extra` is a list of keys and values, as for cuLaunchKernel.
void copy_packed(void** extra, std::vector<std::byte>& bytes) {
  const void* buffer = nullptr;
  std::size_t size = 0;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = extra[1];
    if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *static_cast<const std::size_t*>(extra[1]);
  }
  require(buffer != nullptr && size >= bytes.size(), cudaErrorInvalidValue);
  std::memcpy(bytes.data(), buffer, bytes.size());
}

/// Returns the error code of a launch. If the launch has failed, also sets the process's sticky error to this code.
cudaError_t result_of(hpeStatus status, hpeFault fault) {
  if (status == HPE_SUCCESS) return cudaSuccess;
  const cudaError_t code = fault == HPE_FAULT_NONE ? translate(status) : code_of_fault(fault);
  process().fault().set(code, ::hpeGetLastErrorMessage());
  return code;
}

/// Runs a launch and waits for it. A fault becomes the process's sticky error.
cudaError_t run_launch(kernel& what, int device, const hpeGrid& shape, const std::vector<std::byte>& arguments,
                       const task_memory_uses& uses, const std::shared_ptr<const check::call_place>& place) try {
  hpeFault fault = HPE_FAULT_NONE;
  const checked_launch checked(what, device, arguments, place);
  if (spreads_kernels()) {
    const hpeStatus of_all = run_over({}, what, shape, arguments, &fault);
    return result_of(of_all, fault);
  }
  auto kept = process().memory().keep();
  std::vector<hpeAccess> accesses = uses.ranges;
  if (uses.kernels_on != 0) {
    const std::vector<hpeAccess> all = process().accesses(device);
    accesses.insert(accesses.end(), all.begin(), all.end());
  }
  // If there are many allocations, HPE_ALL is faster than a list of accesses. With several devices, the list is
  // necessary, because it shows which allocations this device may use.
  constexpr std::size_t many = 100;
  const bool everything = accesses.size() > many && process().devices().count() == 1;
  hpeWork started{};
  hpeStatus status =
      ::hpeLaunchGrid(device, what.handle(), &shape, arguments.data(), arguments.size(),
                      everything ? nullptr : accesses.data(), everything ? HPE_ALL : accesses.size(), &started);
  // A launch whose memory does not fit on the device runs in parts.
  if (status == HPE_ERROR_OUT_OF_MEMORY)
    return result_of(run_over(std::span(&device, 1), what, shape, arguments, &fault), fault);
  kept.unlock();
  if (status == HPE_SUCCESS) status = ::hpeWorkWait(started, &fault);
  return result_of(status, fault);
} catch (const std::exception&) {
  const cudaError_t code = code_of_current_exception("launch");
  process().fault().set(code, "a kernel could not be loaded again after cudaDeviceReset");
  return code;
}

/// Makes each of these streams wait for the work that is queued on any of them so far.
void join(const std::vector<std::shared_ptr<cudart_stream>>& streams) {
  std::vector<std::shared_ptr<event>> reached;
  for (const auto& each : streams) {
    reached.push_back(std::make_shared<event>(each->device(), cudaEventDisableTiming));
    reached.back()->record(*each);
  }
  for (const auto& each : streams)
    for (const auto& other : reached) check(submit(*each, std::make_shared<wait_operation>(nullptr, other)));
}

}  // namespace

std::size_t volume(dim3 shape) { return box_extent{shape.x, shape.y, shape.z}.bytes(); }

cudaError_t code_of_fault(hpeFault fault) noexcept {
  switch (fault) {
    case HPE_FAULT_ADDRESS: return cudaErrorIllegalAddress;
    case HPE_FAULT_MISALIGNED: return cudaErrorMisalignedAddress;
    case HPE_FAULT_ASSERT: return cudaErrorAssert;
    case HPE_FAULT_STACK: return cudaErrorHardwareStackError;
    case HPE_FAULT_INSTRUCTION: return cudaErrorIllegalInstruction;
    case HPE_FAULT_DEADLOCK: return cudaErrorLaunchTimeout;
    case HPE_FAULT_NONE:
    case HPE_FAULT_TRAP:
    case HPE_FAULT_OTHER: return cudaErrorLaunchFailure;
  }
  return cudaErrorLaunchFailure;
}

void check_shape(kernel& what, int device, dim3 grid, dim3 block, std::size_t shared_bytes, bool cooperative) {
  const cudaDeviceProp& properties = process().devices().properties(device);
  const hpeKernelInfo info = what.info();
  const std::uint64_t threads = volume(block);
  require(is_within(grid, properties.maxGridSize) && is_within(block, properties.maxThreadsDim) &&
              threads <= static_cast<unsigned>(properties.maxThreadsPerBlock),
          cudaErrorInvalidConfiguration);
  require(threads <= info.max_threads, cudaErrorLaunchOutOfResources);
  if (info.required_block[0] != 0) {
    require(block.x == info.required_block[0] && block.y == std::max(info.required_block[1], 1U) &&
                block.z == std::max(info.required_block[2], 1U),
            cudaErrorInvalidValue);
  }
  require(shared_bytes <= what.dynamic_shared_limit(), cudaErrorInvalidValue);
  if (cooperative) {
    const int each = blocks_per_multiprocessor(what, device, static_cast<int>(threads), shared_bytes);
    const int all = each * std::max(properties.multiProcessorCount, multiprocessors_of_a_gpu);
    require(volume(grid) <= static_cast<std::uint64_t>(all), cudaErrorCooperativeLaunchTooLarge);
  }
}

int blocks_per_multiprocessor(kernel& what, int device, int block_threads, std::size_t shared_bytes) {
  const cudaDeviceProp& properties = process().devices().properties(device);
  const hpeKernelInfo info = what.info();
  require(block_threads > 0, cudaErrorInvalidValue);
  if (block_threads > static_cast<int>(info.max_threads)) return 0;
  const std::size_t shared = saturated_sum(shared_bytes, info.shared_bytes);
  if (shared > properties.sharedMemPerBlockOptin) return 0;
  const int warps = (block_threads + properties.warpSize - 1) / properties.warpSize;
  const int by_threads = properties.maxThreadsPerMultiProcessor / (warps * properties.warpSize);
  const auto by_shared = properties.sharedMemPerMultiprocessor / (shared + properties.reservedSharedMemPerBlock);
  return std::min({by_threads, static_cast<int>(by_shared), properties.maxBlocksPerMultiProcessor});
}

cudaError_t kernel_operation::prepare(int device, stream_task& out) const {
  const std::shared_ptr<kernel> what = process().modules().find_kernel(function);
  check_shape(*what, device, grid, block, shared_bytes, attributes.cooperative());
  const dim3 cluster = choose_cluster(*what, attributes, grid);
  const hpeGrid shape{{grid.x, grid.y, grid.z},
                      {block.x, block.y, block.z},
                      static_cast<std::uint32_t>(shared_bytes),
                      attributes.cooperative() ? 1 : 0,
                      {cluster.x, cluster.y, cluster.z}};
  task_memory_uses uses = process().kernel_uses(device, arguments);
  auto run = [what, device, shape, bytes = arguments, uses, place = place()] {
    return run_launch(*what, device, shape, bytes, uses, place);
  };
  out = {std::move(run), std::move(uses)};
  return cudaSuccess;
}

cudaError_t kernel_operation::take(const cudaKernelNodeParams& launch, int /*device*/) {
  const hpeKernelInfo info = process().modules().find_kernel(launch.func)->info();
  require(info.parameter_count == 0 || launch.kernelParams != nullptr || launch.extra != nullptr,
          cudaErrorInvalidValue);
  std::vector<std::byte> bytes(info.parameter_bytes);
  if (launch.kernelParams != nullptr) {
    for (std::uint32_t i = 0; i < info.parameter_count; ++i) {
      require(launch.kernelParams[i] != nullptr, cudaErrorInvalidValue);
      std::memcpy(bytes.data() + info.parameter_offsets[i], launch.kernelParams[i], info.parameter_sizes[i]);
    }
  } else if (info.parameter_count != 0) {
    copy_packed(launch.extra, bytes);
  }
  function = launch.func;
  set_place_of_launch(function);
  grid = launch.gridDim;
  block = launch.blockDim;
  shared_bytes = launch.sharedMemBytes;
  arguments = std::move(bytes);
  argument_offsets.assign(info.parameter_offsets, info.parameter_offsets + info.parameter_count);
  return cudaSuccess;
}

void launch_on_devices(const std::vector<cudaStream_t>& streams, unsigned flags,
                       const std::function<void(std::size_t)>& launch) {
  constexpr unsigned no_wait_before = 1, no_wait_behind = 2;  // the values in CUDA 12's header
  require(!streams.empty() && (flags & ~(no_wait_before | no_wait_behind)) == 0, cudaErrorInvalidValue);
  std::vector<std::shared_ptr<cudart_stream>> where;
  std::uint64_t devices = 0;
  for (const cudaStream_t each : streams) {
    require(each != nullptr && each != cudaStreamLegacy && each != cudaStreamPerThread, cudaErrorInvalidValue);
    where.push_back(process().find_stream(each));
    require_not_capturing(*where.back());
    const std::uint64_t bit = std::uint64_t{1} << where.back()->device();
    require((devices & bit) == 0, cudaErrorInvalidDevice);
    devices |= bit;
  }
  if ((flags & no_wait_before) == 0) join(where);
  for (std::size_t i = 0; i < streams.size(); ++i) launch(i);
  if ((flags & no_wait_behind) == 0) join(where);
}

}  // namespace hpe::cudart
