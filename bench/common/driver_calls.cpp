#include "bench/common/driver_calls.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <cstdlib>
#include <cstring>

namespace hpe::bench {

void* driver_entry(const char* name) {
  static void* const library = ::dlopen("libcuda.so.1", RTLD_NOW);
  void* const entry = library != nullptr ? ::dlsym(library, name) : nullptr;
  if (entry != nullptr) return entry;
  fmt::print(stderr, "this machine has no CUDA driver with {}: {}\n", name, ::dlerror());
  std::exit(1);  // NOLINT(concurrency-mt-unsafe)
}

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  fmt::print(stderr, "{} failed: CUDA error {}\n", what, static_cast<int>(result));
  std::exit(1);  // NOLINT(concurrency-mt-unsafe)
}

pinned_buffer::pinned_buffer(std::size_t bytes) {
  CALL(cuMemHostAlloc, &data_, bytes, CU_MEMHOSTALLOC_PORTABLE);
  std::memset(data_, 1, bytes);
}

pinned_buffer::~pinned_buffer() { CALL(cuMemFreeHost, data_); }

}  // namespace hpe::bench
