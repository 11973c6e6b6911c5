// The launch functions of CUDA before version 4: the program sets the parameters, the block shape and the size of
// shared memory of a function by separate calls. These settings apply to all later launches of the function.

#include <cuda.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <map>
#include <vector>

#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/module/module_table.h"
#include "interpose/soft/libcuda/call.h"
#include "runtime/base/thread_safety.h"

using namespace hpe::libcuda;
using hpe::cudart::process;
using hpe::cudart::require;

namespace {

struct kept_launch {
  std::vector<std::byte> parameters;
  std::array<unsigned, 3> block{1, 1, 1};
  unsigned shared_bytes = 0;
};

/// The launch parameters that the program has set for each function (cuFuncSetBlockShape, cuParamSet...). When a module
/// is unloaded, the entries of its functions are not removed. Thread-safe.
class kept_launches {
 public:
  template <class Change>
  void change(CUfunction function, const Change& how) {
    static_cast<void>(process().modules().find_kernel(function));
    const hpe::lock_guard lock(mutex_);
    how(launches_[function]);
  }
  kept_launch of(CUfunction function) {
    const hpe::lock_guard lock(mutex_);
    return launches_[function];
  }

 private:
  hpe::mutex mutex_;
  std::map<CUfunction, kept_launch> launches_ HPE_GUARDED_BY(mutex_);
};

kept_launches& launches() {
  static auto* const only = new kept_launches;
  return *only;
}

CUresult put(const char* function, CUfunction kernel, int offset, const void* bytes, std::size_t count) {
  return in_context(function, [&] {
    constexpr std::size_t most = 4096;  // limit of the bytes of a kernel's parameters in CUDA before version 4
    require(offset >= 0 && bytes != nullptr && static_cast<std::size_t>(offset) + count <= most, cudaErrorInvalidValue);
    launches().change(kernel, [&](kept_launch& it) {
      it.parameters.resize(std::max(it.parameters.size(), static_cast<std::size_t>(offset) + count));
      std::memcpy(it.parameters.data() + offset, bytes, count);
    });
  });
}

CUresult launch(CUfunction function, int width, int height, CUstream stream) {
  kept_launch it = launches().of(function);
  std::size_t bytes = it.parameters.size();
  std::array<void*, 5> packed{CU_LAUNCH_PARAM_BUFFER_POINTER, it.parameters.data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                              CU_LAUNCH_PARAM_END};
  if (width <= 0 || height <= 0) return CUDA_ERROR_INVALID_VALUE;
  return cuLaunchKernel(function, static_cast<unsigned>(width), static_cast<unsigned>(height), 1, it.block[0],
                        it.block[1], it.block[2], it.shared_bytes, stream, nullptr, packed.data());
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuFuncSetBlockShape(CUfunction function, int x, int y, int z) {
  return in_context("cuFuncSetBlockShape", [&] {
    require(x > 0 && y > 0 && z > 0, cudaErrorInvalidValue);
    launches().change(function, [&](kept_launch& it) {
      it.block = {static_cast<unsigned>(x), static_cast<unsigned>(y), static_cast<unsigned>(z)};
    });
  });
}

CUresult CUDAAPI cuFuncSetSharedSize(CUfunction function, unsigned bytes) {
  return in_context("cuFuncSetSharedSize",
                    [&] { launches().change(function, [&](kept_launch& it) { it.shared_bytes = bytes; }); });
}

CUresult CUDAAPI cuParamSetSize(CUfunction function, unsigned bytes) {
  return in_context("cuParamSetSize", [&] {
    constexpr unsigned most = 4096;
    require(bytes <= most, cudaErrorInvalidValue);
    launches().change(function, [&](kept_launch& it) { it.parameters.resize(bytes); });
  });
}

CUresult CUDAAPI cuParamSeti(CUfunction function, int offset, unsigned value) {
  return put("cuParamSeti", function, offset, &value, sizeof value);
}
CUresult CUDAAPI cuParamSetf(CUfunction function, int offset, float value) {
  return put("cuParamSetf", function, offset, &value, sizeof value);
}
CUresult CUDAAPI cuParamSetv(CUfunction function, int offset, void* bytes, unsigned count) {
  return put("cuParamSetv", function, offset, bytes, count);
}

CUresult CUDAAPI cuLaunch(CUfunction function) { return launch(function, 1, 1, nullptr); }
CUresult CUDAAPI cuLaunchGrid(CUfunction function, int width, int height) {
  return launch(function, width, height, nullptr);
}
CUresult CUDAAPI cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream) {
  return launch(function, width, height, stream);
}
}
