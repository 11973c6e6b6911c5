#include "bench/pageable_copy.h"

#include <cuda.h>
#include <dlfcn.h>
#include <fmt/core.h>

#include <cstdlib>

#include "runtime/device/cuda/open.h"

namespace hpe::bench {

namespace {

/// Calls an entry of the driver by its name; the program ends if it fails.
template <class Function, class... Arguments>
void call(const char* name, Function* /*type*/, Arguments... arguments) {
  static void* const library = ::dlopen("libcuda.so.1", RTLD_NOW);
  const CUresult result = reinterpret_cast<Function*>(::dlsym(library, name))(arguments...);
  if (result == CUDA_SUCCESS) return;
  fmt::print(stderr, "{} failed: CUDA error {}\n", name, static_cast<int>(result));
  std::exit(1);  // NOLINT(concurrency-mt-unsafe)
}

// The macros of cuda.h choose the version of each entry.
#define NAME_OF_EXPANDED(name) #name
#define NAME_OF(name) NAME_OF_EXPANDED(name)
#define CALL(name, ...) call(NAME_OF(name), &::name, __VA_ARGS__)

}  // namespace

pageable_copy::pageable_copy(std::size_t largest) : largest_(largest), exists_(device::cuda::present()) {
  if (!exists_) return;
  CUcontext context = nullptr;
  CALL(cuDevicePrimaryCtxRetain, &context, 0);
  context_ = context;
  CALL(cuCtxSetCurrent, context);
  CALL(cuMemAlloc, &memory_, 2 * largest);
}

void pageable_copy::up(int lane, const std::byte* pageable, std::size_t bytes) {
  CALL(cuCtxSetCurrent, static_cast<CUcontext>(context_));
  CALL(cuMemcpyHtoD, memory_ + static_cast<std::size_t>(lane) * largest_, pageable, bytes);
}

void pageable_copy::down(int lane, std::byte* pageable, std::size_t bytes) {
  CALL(cuCtxSetCurrent, static_cast<CUcontext>(context_));
  CALL(cuMemcpyDtoH, pageable, memory_ + static_cast<std::size_t>(lane) * largest_, bytes);
}

}  // namespace hpe::bench
