// The functions that load modules at run time, from memory or a file: PTX, or fat binaries that contain PTX.

#include <cuda_runtime_api.h>

#include <string>
#include <utility>
#include <vector>

#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/device/device_table.h"
#include "interpose/soft/cudart/module/module_image.h"
#include "interpose/soft/cudart/module/module_table.h"

using namespace hpe::cudart;

namespace {

cudart_module& module_of(cudaLibrary_t library) { return process().modules().find_module(library); }

cudaLibrary_t load(std::vector<std::string> texts) {
  return reinterpret_cast<cudaLibrary_t>(&process().modules().load(std::move(texts), process().memory()));
}

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption* /*options*/,
                                          void** /*option_values*/, unsigned /*option_count*/,
                                          cudaLibraryOption* /*library_options*/, void** /*library_option_values*/,
                                          unsigned /*library_option_count*/) {
  return api_call("cudaLibraryLoadData", [&] {
    require(library != nullptr, cudaErrorInvalidValue);
    *library = load(read_image(code));
  });
}

cudaError_t CUDARTAPI cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* path, cudaJitOption* /*options*/,
                                              void** /*option_values*/, unsigned /*option_count*/,
                                              cudaLibraryOption* /*library_options*/, void** /*library_option_values*/,
                                              unsigned /*library_option_count*/) {
  return api_call("cudaLibraryLoadFromFile", [&] {
    require(library != nullptr && path != nullptr, cudaErrorInvalidValue);
    *library = load(read_image_file(path));
  });
}

cudaError_t CUDARTAPI cudaLibraryUnload(cudaLibrary_t library) {
  return api_call("cudaLibraryUnload", [&] {
    cudart_module& gone = module_of(library);
    process().finish_work();
    process().modules().remove(gone);
  });
}

cudaError_t CUDARTAPI cudaLibraryGetKernel(cudaKernel_t* handle, cudaLibrary_t library, const char* name) {
  return api_call("cudaLibraryGetKernel", [&] {
    require(handle != nullptr && name != nullptr, cudaErrorInvalidValue);
    *handle = reinterpret_cast<cudaKernel_t>(process().modules().find_kernel(module_of(library), name).get());
  });
}

cudaError_t CUDARTAPI cudaLibraryGetKernelCount(unsigned* count, cudaLibrary_t library) {
  return api_call("cudaLibraryGetKernelCount", [&] {
    require(count != nullptr, cudaErrorInvalidValue);
    *count = static_cast<unsigned>(module_of(library).kernel_names().size());
  });
}

cudaError_t CUDARTAPI cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned count, cudaLibrary_t library) {
  return api_call("cudaLibraryEnumerateKernels", [&] {
    require(kernels != nullptr && count > 0, cudaErrorInvalidValue);
    cudart_module& owner = module_of(library);
    for (const std::string& name : owner.kernel_names()) {
      if (count-- == 0) break;
      *kernels++ = reinterpret_cast<cudaKernel_t>(process().modules().add_kernel(owner, name.c_str(), nullptr).get());
    }
  });
}

cudaError_t CUDARTAPI cudaLibraryGetGlobal(void** address, std::size_t* bytes, cudaLibrary_t library,
                                           const char* name) {
  return api_call("cudaLibraryGetGlobal", [&] {
    require(name != nullptr && (address != nullptr || bytes != nullptr), cudaErrorInvalidValue);
    try {
      const memory_range found = module_of(library).locate(name, process().current_device());
      if (address != nullptr) *address = found.address;
      if (bytes != nullptr) *bytes = found.size;
    } catch (const failure& caught) {
      throw failure(caught.code() == cudaErrorInvalidSymbol ? cudaErrorSymbolNotFound : caught.code());
    }
  });
}

/// Checks the number of the device, but sets the attribute for all devices, because a kernel has the same attributes on
/// all of them.
cudaError_t CUDARTAPI cudaKernelSetAttributeForDevice(cudaKernel_t handle, cudaFuncAttribute attribute, int value,
                                                      int device) {
  const cudaError_t is_device =
      api_call("cudaKernelSetAttributeForDevice", [&] { static_cast<void>(process().devices().properties(device)); });
  if (is_device != cudaSuccess) return is_device;
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(handle), attribute, value);
}
}
