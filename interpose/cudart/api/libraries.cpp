// Modules that a program loads at run time, from memory or a file: PTX, or fat binaries that contain PTX.

#include <cuda_runtime_api.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "interpose/cudart/device/context.h"
#include "interpose/cudart/device/device_table.h"
#include "interpose/cudart/module/module_table.h"
#include "runtime/ptx/files/fat_binary.h"

using namespace hpe::cudart;

namespace {

module& module_of(cudaLibrary_t library) {
  auto* const candidate = reinterpret_cast<module*>(library);
  require(process().modules().holds(candidate), cudaErrorInvalidResourceHandle);
  return *candidate;
}

bool begins_with_fat_binary(const void* code) {
  const unsigned char wrapper[] = {0xb1, 0x43, 0x62, 0x46};
  const unsigned char container[] = {0x50, 0xed, 0x55, 0xba};
  return std::memcmp(code, wrapper, sizeof wrapper) == 0 || std::memcmp(code, container, sizeof container) == 0;
}

/// The PTX in `code`, which is a fat binary, whose header gives its size, or PTX text that ends with a zero byte.
/// Throws cudaErrorNoKernelImageForDevice for machine code of GPUs.
std::string text_of(const void* code) {
  require(code != nullptr, cudaErrorInvalidValue);
  if (begins_with_fat_binary(code)) {
    const std::size_t not_bounded = SIZE_MAX / 2;
    return hpe::ptx::choose_ptx(hpe::ptx::read_fat_binary(code, not_bounded)).text;
  }
  require(std::memcmp(code, "\177ELF", 4) != 0, cudaErrorNoKernelImageForDevice);
  return static_cast<const char*>(code);
}

cudaLibrary_t load(std::string text) {
  auto made = std::make_unique<module>(std::move(text), process().memory());
  static_cast<void>(made->handle());
  return reinterpret_cast<cudaLibrary_t>(&process().modules().add(std::move(made)));
}

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption* /*options*/,
                                          void** /*option_values*/, unsigned /*option_count*/,
                                          cudaLibraryOption* /*library_options*/, void** /*library_option_values*/,
                                          unsigned /*library_option_count*/) {
  return api_call("cudaLibraryLoadData", [&] {
    require(library != nullptr, cudaErrorInvalidValue);
    *library = load(text_of(code));
  });
}

cudaError_t CUDARTAPI cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* path, cudaJitOption* /*options*/,
                                              void** /*option_values*/, unsigned /*option_count*/,
                                              cudaLibraryOption* /*library_options*/, void** /*library_option_values*/,
                                              unsigned /*library_option_count*/) {
  return api_call("cudaLibraryLoadFromFile", [&] {
    require(library != nullptr && path != nullptr, cudaErrorInvalidValue);
    std::ifstream file(path, std::ios::binary);
    require(file.good(), cudaErrorFileNotFound);
    std::string code((std::istreambuf_iterator<char>(file)), {});
    require(code.size() >= 16, cudaErrorInvalidKernelImage);
    *library = load(text_of(code.c_str()));
  });
}

cudaError_t CUDARTAPI cudaLibraryUnload(cudaLibrary_t library) {
  return api_call("cudaLibraryUnload", [&] {
    module& gone = module_of(library);
    process().finish_work();
    process().modules().remove(gone);
  });
}

cudaError_t CUDARTAPI cudaLibraryGetKernel(cudaKernel_t* handle, cudaLibrary_t library, const char* name) {
  return api_call("cudaLibraryGetKernel", [&] {
    require(handle != nullptr && name != nullptr, cudaErrorInvalidValue);
    hpeKernel found = nullptr;
    module& owner = module_of(library);
    require(::hpeModuleGetKernel(&found, owner.handle(), name) == HPE_SUCCESS, cudaErrorSymbolNotFound);
    *handle = reinterpret_cast<cudaKernel_t>(process().modules().add_kernel(owner, name, nullptr).get());
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
    module& owner = module_of(library);
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

/// A kernel has the same attributes on all devices.
cudaError_t CUDARTAPI cudaKernelSetAttributeForDevice(cudaKernel_t handle, cudaFuncAttribute attribute, int value,
                                                      int device) {
  const cudaError_t is_device =
      api_call("cudaKernelSetAttributeForDevice", [&] { static_cast<void>(process().devices().properties(device)); });
  if (is_device != cudaSuccess) return is_device;
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(handle), attribute, value);
}
}
