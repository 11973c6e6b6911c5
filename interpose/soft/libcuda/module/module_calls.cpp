// The functions for modules, libraries, kernels and their attributes. hpe loads an image for all devices. So a CUmodule
// and a CUlibrary are handles of the same kind of object (cudart::cudart_module), and so are a CUfunction and a
// CUkernel (cudart::kernel).

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/module/module_image.h"
#include "interpose/soft/cudart/module/module_table.h"
#include "interpose/soft/libcuda/call.h"
#include "interpose/soft/libcuda/module/jit_options.h"

using namespace hpe::libcuda;
using hpe::cudart::check;
using hpe::cudart::cudart_module;
using hpe::cudart::kernel;
using hpe::cudart::process;
using hpe::cudart::require;

namespace {

cudart_module& module_of(const void* handle) { return process().modules().find_module(handle); }
std::shared_ptr<kernel> kernel_of(const void* handle) { return process().modules().find_kernel(handle); }

/// Loads the image that read() returns. If loading fails, writes the reason to the program's error log.
template <class Handle, class Read>
CUresult load(const char* function, Handle* made, const jit_logs& logs, const Read& read) {
  return call(function, [&] {
    require(made != nullptr, cudaErrorInvalidValue);
    logs.clear();
    std::string why;
    try {
      *made = reinterpret_cast<Handle>(&process().modules().load(read(), process().memory(), &why));
    } catch (const hpe::cudart::failure& caught) {
      if (why.empty()) why = caught.reason();
      logs.tell(why.empty() ? cudaGetErrorString(caught.code()) : why);
      throw;
    }
  });
}

template <class Handle>
CUresult load_data(const char* function, Handle* made, const void* image, const jit_logs& logs) {
  return load(function, made, logs, [&] { return hpe::cudart::read_image(image); });
}

cudaError_t locate(CUdeviceptr* address, std::size_t* bytes, const void* handle, const char* name) {
  return cudaLibraryGetGlobal(reinterpret_cast<void**>(address), bytes,
                              reinterpret_cast<cudaLibrary_t>(const_cast<void*>(handle)), name);
}

template <class Handle>
void enumerate(Handle* handles, unsigned room, const void* owner) {
  require(handles != nullptr, cudaErrorInvalidValue);
  cudart_module& of = module_of(owner);
  for (const std::string& name : of.kernel_names()) {
    if (room-- == 0) return;
    *handles++ = reinterpret_cast<Handle>(process().modules().find_kernel(of, name.c_str()).get());
  }
}

int attribute_of(const void* handle, CUfunction_attribute attribute) {
  cudaFuncAttributes a{};
  check(cudaFuncGetAttributes(&a, handle));
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: return a.maxThreadsPerBlock;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: return static_cast<int>(a.sharedSizeBytes);
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: return static_cast<int>(a.constSizeBytes);
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: return static_cast<int>(a.localSizeBytes);
    case CU_FUNC_ATTRIBUTE_NUM_REGS: return a.numRegs;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION: return a.ptxVersion;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: return a.binaryVersion;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA: return a.cacheModeCA;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: return a.maxDynamicSharedSizeBytes;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: return a.preferredShmemCarveout;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET: return a.clusterDimMustBeSet;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH: return a.requiredClusterWidth;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT: return a.requiredClusterHeight;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: return a.requiredClusterDepth;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: return a.nonPortableClusterSizeAllowed;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: return a.clusterSchedulingPolicyPreference;
    default: throw hpe::cudart::failure(cudaErrorInvalidValue);
  }
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuModuleLoad(CUmodule* made, const char* path) {
  return load("cuModuleLoad", made, {}, [&] { return hpe::cudart::read_image_file(path); });
}

CUresult CUDAAPI cuModuleLoadData(CUmodule* made, const void* image) {
  return load_data("cuModuleLoadData", made, image, {});
}

CUresult CUDAAPI cuModuleLoadDataEx(CUmodule* made, const void* image, unsigned count, CUjit_option* options,
                                    void** values) {
  return load_data("cuModuleLoadDataEx", made, image, {count, options, values});
}

CUresult CUDAAPI cuModuleLoadFatBinary(CUmodule* made, const void* image) {
  return load_data("cuModuleLoadFatBinary", made, image, {});
}

CUresult CUDAAPI cuLibraryLoadData(CUlibrary* made, const void* image, CUjit_option* options, void** values,
                                   unsigned count, CUlibraryOption* /*library_options*/,
                                   void** /*library_option_values*/, unsigned /*library_option_count*/) {
  return load_data("cuLibraryLoadData", made, image, {count, options, values});
}

CUresult CUDAAPI cuLibraryLoadFromFile(CUlibrary* made, const char* path, CUjit_option* options, void** values,
                                       unsigned count, CUlibraryOption* /*library_options*/,
                                       void** /*library_option_values*/, unsigned /*library_option_count*/) {
  return load("cuLibraryLoadFromFile", made, {count, options, values},
              [&] { return hpe::cudart::read_image_file(path); });
}

CUresult CUDAAPI cuModuleUnload(CUmodule handle) {
  return call("cuModuleUnload", [&] { return cudaLibraryUnload(reinterpret_cast<cudaLibrary_t>(handle)); });
}

CUresult CUDAAPI cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  return call("cuModuleGetLoadingMode", [&] { given(mode) = CU_MODULE_EAGER_LOADING; });
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction* function, CUmodule handle, const char* name) {
  return call("cuModuleGetFunction", [&] {
    require(function != nullptr && name != nullptr && *name != '\0', cudaErrorInvalidValue);
    *function = reinterpret_cast<CUfunction>(process().modules().find_kernel(module_of(handle), name).get());
  });
}

CUresult CUDAAPI cuModuleGetGlobal_v2(CUdeviceptr* address, std::size_t* bytes, CUmodule handle, const char* name) {
  return in_context("cuModuleGetGlobal_v2", [&] { return locate(address, bytes, handle, name); });
}

/// A managed variable has the same address on all devices.
CUresult CUDAAPI cuLibraryGetManaged(CUdeviceptr* address, std::size_t* bytes, CUlibrary library, const char* name) {
  return call("cuLibraryGetManaged", [&] { return locate(address, bytes, library, name); });
}

CUresult CUDAAPI cuModuleGetFunctionCount(unsigned* count, CUmodule handle) {
  return call("cuModuleGetFunctionCount",
              [&] { given(count) = static_cast<unsigned>(module_of(handle).kernel_names().size()); });
}

CUresult CUDAAPI cuModuleEnumerateFunctions(CUfunction* functions, unsigned room, CUmodule handle) {
  return call("cuModuleEnumerateFunctions", [&] { enumerate(functions, room, handle); });
}

CUresult CUDAAPI cuLibraryGetKernelCount(unsigned* count, CUlibrary library) {
  return call("cuLibraryGetKernelCount",
              [&] { given(count) = static_cast<unsigned>(module_of(library).kernel_names().size()); });
}

CUresult CUDAAPI cuLibraryEnumerateKernels(CUkernel* kernels, unsigned room, CUlibrary library) {
  return call("cuLibraryEnumerateKernels", [&] { enumerate(kernels, room, library); });
}

CUresult CUDAAPI cuLibraryGetModule(CUmodule* made, CUlibrary library) {
  return in_context("cuLibraryGetModule", [&] { given(made) = reinterpret_cast<CUmodule>(&module_of(library)); });
}

CUresult CUDAAPI cuKernelGetFunction(CUfunction* function, CUkernel handle) {
  return in_context("cuKernelGetFunction",
                    [&] { given(function) = reinterpret_cast<CUfunction>(kernel_of(handle).get()); });
}

CUresult CUDAAPI cuKernelGetLibrary(CUlibrary* library, CUkernel handle) {
  return call("cuKernelGetLibrary", [&] { given(library) = reinterpret_cast<CUlibrary>(&kernel_of(handle)->owner()); });
}

CUresult CUDAAPI cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel handle,
                                      CUdevice /*device*/) {
  return call("cuKernelGetAttribute", [&] { given(value) = attribute_of(handle, attribute); });
}

CUresult CUDAAPI cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle, CUdevice device) {
  return call("cuKernelSetAttribute", [&] {
    return cudaKernelSetAttributeForDevice(reinterpret_cast<cudaKernel_t>(handle),
                                           static_cast<cudaFuncAttribute>(attribute), value, device);
  });
}

/// The configuration is a hint, which has no effect on soft devices.
CUresult CUDAAPI cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache /*config*/, CUdevice /*device*/) {
  return call("cuKernelSetCacheConfig", [&] { static_cast<void>(kernel_of(handle)); });
}

CUresult CUDAAPI cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
  return call("cuFuncGetAttribute", [&] { given(value) = attribute_of(handle, attribute); });
}

CUresult CUDAAPI cuFuncGetModule(CUmodule* made, CUfunction handle) {
  return call("cuFuncGetModule", [&] { given(made) = reinterpret_cast<CUmodule>(&kernel_of(handle)->owner()); });
}

CUresult CUDAAPI cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction handle) {
  return call("cuFuncIsLoaded", [&] {
    static_cast<void>(kernel_of(handle));
    given(state) = CU_FUNCTION_LOADING_STATE_LOADED;
  });
}

CUresult CUDAAPI cuFuncLoad(CUfunction handle) {
  return call("cuFuncLoad", [&] { static_cast<void>(kernel_of(handle)->handle()); });
}
}
