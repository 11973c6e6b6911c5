// What the code that nvcc puts into programs calls: before main for each fat binary, and at each <<<...>>>. Nothing of
// a fat binary is read here; see module.h.

#include <cuda_runtime_api.h>
#include <fatbinary_section.h>

#include <memory>
#include <utility>
#include <vector>

#include "interpose/cudart/context.h"
#include "interpose/cudart/launch.h"
#include "interpose/cudart/module_table.h"
#include "interpose/cudart/stream_table.h"
#include "interpose/cudart/thread_state.h"
#include "runtime/base/log.h"

using namespace hpe::cudart;

namespace {

module& module_of(void** handle) { return *reinterpret_cast<module*>(handle); }

/// A wrapper names its container, or the containers of the objects that were linked with each other (-rdc=true): they
/// have the PTX then, and what the linker made of them has machine code only.
std::vector<const void*> containers_of(const __fatBinC_Wrapper_t& wrapper) {
  if (wrapper.version != FATBINC_LINK_VERSION || wrapper.filename_or_fatbins == nullptr) return {wrapper.data};
  std::vector<const void*> containers;
  for (auto* each = static_cast<const void* const*>(wrapper.filename_or_fatbins); *each != nullptr; ++each) {
    containers.push_back(*each);
  }
  if (containers.empty()) return {wrapper.data};
  return containers;
}

}  // namespace

extern "C" {

void** CUDARTAPI __cudaRegisterFatBinary(void* fat_binary) {
  const auto& wrapper = *static_cast<const __fatBinC_Wrapper_t*>(fat_binary);
  auto made = std::make_unique<module>(containers_of(wrapper), process().memory());
  return reinterpret_cast<void**>(&process().modules().add(std::move(made)));
}

void CUDARTAPI __cudaRegisterFatBinaryEnd(void** /*handle*/) {}

void CUDARTAPI __cudaUnregisterFatBinary(void** handle) {
  api_call_always("__cudaUnregisterFatBinary", [&] {
    process().finish_work();  // which may use the module
    process().modules().remove(module_of(handle));
  });
}

void CUDARTAPI __cudaRegisterFunction(void** handle, const char* host_function, char* /*device_function*/,
                                      const char* name, int /*thread_limit*/, uint3* /*thread*/, uint3* /*block*/,
                                      dim3* /*block_size*/, dim3* /*grid_size*/, int* /*warp_size*/) {
  process().modules().add_kernel(module_of(handle), name, host_function);
}

void CUDARTAPI __cudaRegisterVar(void** handle, char* host_symbol, char* /*device_address*/, const char* name,
                                 int /*is_external*/, std::size_t size, int /*is_constant*/, int /*is_global*/) {
  process().modules().add_variable(
      {.owner = &module_of(handle), .name = name, .host_symbol = host_symbol, .size = size});
}

void CUDARTAPI __cudaRegisterManagedVar(void** handle, void** host_symbol, char* /*device_address*/, const char* name,
                                        int /*is_external*/, std::size_t size, int /*is_constant*/, int /*is_global*/) {
  process().modules().add_variable(
      {.owner = &module_of(handle), .name = name, .host_symbol = host_symbol, .managed = host_symbol, .size = size});
}

/// Constants that device code was given at compile time; they need nothing here.
void CUDARTAPI __cudaRegisterHostVar(void** /*handle*/, const char* /*name*/, char* /*host*/, std::size_t /*size*/) {}

/// Before the host's first access to a managed variable of a module.
char CUDARTAPI __cudaInitModule(void** handle) {
  return static_cast<char>(api_call("__cudaInitModule", [&] {
                             [[maybe_unused]] hpeModule const loaded = module_of(handle).handle();
                           }) == cudaSuccess);
}

unsigned CUDARTAPI __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream) {
  this_thread().configurations.push_back({grid, block, shared_bytes, stream});
  return 0;
}

cudaError_t CUDARTAPI __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared_bytes, void* stream) {
  return api_call_always("__cudaPopCallConfiguration", [&] {
    auto& configurations = this_thread().configurations;
    require(!configurations.empty(), cudaErrorMissingConfiguration);
    const call_configuration last = configurations.back();
    configurations.pop_back();
    *grid = last.grid;
    *block = last.block;
    *shared_bytes = last.shared_bytes;
    *static_cast<cudaStream_t*>(stream) = last.stream;
  });
}

/// The handle that a stub keeps. A function that nobody registered gets none, and its launch tells so.
cudaError_t CUDARTAPI __cudaGetKernel(cudaKernel_t* kernel, const void* host_function) {
  return cudaGetKernel(kernel, host_function);
}

cudaError_t CUDARTAPI __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                         std::size_t shared_bytes, cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream);
}

cudaError_t CUDARTAPI __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                              std::size_t shared_bytes, cudaStream_t stream) {
  const own_default_stream scope;
  return cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream);
}
}
