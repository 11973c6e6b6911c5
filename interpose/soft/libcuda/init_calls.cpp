// The functions for initialization, versions and errors, and the functions that look up other functions.

#include <cuda.h>
#include <cudaProfiler.h>
#include <cuda_runtime_api.h>

#include <cstring>
#include <string_view>

#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/device/device_table.h"
#include "interpose/soft/cudart/notice/relink_notice.h"
#include "interpose/soft/libcuda/call.h"

using namespace hpe::libcuda;
using hpe::cudart::process;
using hpe::cudart::require;

namespace {

/// A function that cuGetProcAddress can return.
struct driver_function {
  std::string_view name;
  int since;  ///< the first CUDA version that contains this version of the function
  void* function;
  void* with_own_stream;  ///< the same function for programs with per-thread default streams
};

const auto& entries() {
  static const driver_function all[] = {
#define HPE_LIBCUDA_ENTRY(name, since, function, own) \
  {#name, since, reinterpret_cast<void*>(&::function), reinterpret_cast<void*>(&::own)},
#include <entries.def>
#undef HPE_LIBCUDA_ENTRY
  };
  return all;
}

/// Returns the newest version of a function that a version of CUDA contains; null if it contains none. Sets is_known to
/// whether any version of the function exists.
const driver_function* find(std::string_view name, int version, bool& is_known) {
  const driver_function* last = nullptr;
  is_known = false;
  for (const driver_function& each : entries()) {
    if (each.name != name) continue;
    is_known = true;
    if (each.since <= version) last = &each;
  }
  return last;
}

}  // namespace

extern "C" {

/// hpe's search for a driver skips libraries that export this symbol, because they are not NVIDIA's driver.
__attribute__((visibility("default"))) extern const int hpe_cuda_on_soft_devices = 1;

CUresult CUDAAPI cuInit(unsigned flags) {
  return call_always("cuInit", [&] {
    require(flags == 0, cudaErrorInvalidValue);
    require(process().devices().count() > 0, cudaErrorNoDevice);  // starts hpe
  });
}

CUresult CUDAAPI cuDriverGetVersion(int* version) {
  return call_always("cuDriverGetVersion", [&] { given(version) = CUDA_VERSION; });
}

CUresult CUDAAPI cuGetErrorName(CUresult code, const char** name) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *name = name_of(code);
  return *name != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/// Returns the runtime's sentence for the same code.
CUresult CUDAAPI cuGetErrorString(CUresult code, const char** sentence) {
  if (sentence == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *sentence = name_of(code) != nullptr ? cudaGetErrorString(static_cast<cudaError_t>(code)) : nullptr;
  return *sentence != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                                     CUdriverProcAddressQueryResult* result) {
  return call_always("cuGetProcAddress_v2", [&]() -> cudaError_t {
    constexpr cuuint64_t known = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    require(symbol != nullptr && function != nullptr && (flags & ~known) == 0 && flags != known, cudaErrorInvalidValue);
    bool is_known = false;
    const driver_function* const found = find(symbol, version, is_known);
    *function = nullptr;
    if (result != nullptr) {
      *result = found != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS
                : is_known       ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                 : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    }
    if (found == nullptr) return result != nullptr ? cudaSuccess : cudaErrorSymbolNotFound;  // as NVIDIA's driver does
    const bool own = flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    *function = own ? found->with_own_stream : found->function;
    return cudaSuccess;
  });
}

CUresult CUDAAPI cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  return cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
}

CUresult CUDAAPI cuProfilerInitialize(const char* /*settings*/, const char* /*output*/, CUoutput_mode /*mode*/) {
  return CUDA_SUCCESS;
}

/// NVIDIA's libraries recognise NVIDIA's driver by private tables. This library has no such tables, so NVIDIA's
/// libraries refuse it. Each copy of NVIDIA's runtime requests a table at its first call, even in a library that
/// contains no other CUDA code. So this is the latest point at which hpe prints the notice about statically linked
/// runtimes.
CUresult CUDAAPI cuGetExportTable(const void** table, const CUuuid* /*id*/) {
  hpe::cudart::tell_of_runtime_at(__builtin_return_address(0));
  if (table != nullptr) *table = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}
}
