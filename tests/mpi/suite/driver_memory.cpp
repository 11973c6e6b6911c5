#include "tests/mpi/suite/driver_memory.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/mpi/ranks.h"

// Looks up the functions of the CUDA driver by name, because builds without the CUDA toolkit have no cuda.h.

namespace {

template <class... Arguments>
void call(const char* name, Arguments... arguments) {
  static void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  auto* const entry = driver != nullptr ? reinterpret_cast<int (*)(Arguments...)>(::dlsym(driver, name)) : nullptr;
  const int result = entry != nullptr ? entry(arguments...) : -1;
  if (result == 0) return;
  std::printf("%s: error %d\n", name, result);
  std::abort();
}

void enter_context() {
  static void* const context = [] {
    void* made = nullptr;
    int devices = 0;
    call("cuInit", 0U);
    call("cuDeviceGetCount", &devices);
    call("cuDevicePrimaryCtxRetain", &made, rank() % devices);
    return made;
  }();
  call("cuCtxSetCurrent", context);
}

bool option(const char* value) {
  const char* const set = std::getenv("HPE_TEST_MPI_MEMORY");
  return set != nullptr && std::strcmp(set, value) == 0;
}
bool of_pools() { return option("pool"); }

}  // namespace

bool driver_bytes::wanted() { return option("driver") || of_pools(); }

driver_bytes::driver_bytes(const std::vector<std::byte>& content) : bytes_(content.size()) {
  if (bytes_ == 0) return;
  enter_context();
  if (of_pools()) {
    call("cuMemAllocAsync", &address_, bytes_, static_cast<void*>(nullptr));
    call("cuCtxSynchronize");
  } else {
    call("cuMemAlloc_v2", &address_, bytes_);
  }
  call("cuMemcpyHtoD_v2", address_, static_cast<const void*>(content.data()), bytes_);
}

driver_bytes::~driver_bytes() {
  if (bytes_ == 0) return;
  enter_context();
  if (of_pools())
    call("cuMemFreeAsync", address_, static_cast<void*>(nullptr));
  else
    call("cuMemFree_v2", address_);
}

std::byte* driver_bytes::data() const { return reinterpret_cast<std::byte*>(address_); }

std::vector<std::byte> driver_bytes::content() const {
  std::vector<std::byte> result(bytes_);
  if (bytes_ == 0) return result;
  enter_context();
  call("cuMemcpyDtoH_v2", static_cast<void*>(result.data()), address_, bytes_);
  return result;
}
