#include "bench/copies/device_copy.h"

#include <dlfcn.h>

#include <iterator>

#include "bench/common/devices.h"
#include "hpe/hpe.hpp"

namespace hpe::bench {

namespace {

struct driver_copy {
  void* to;
  const void* from;
  std::size_t bytes;

  static int queue(void* stream, void* self) {
    using function = int (*)(void*, const void*, std::size_t, void*);  // CUdeviceptr is passed like a pointer
    static const auto copy =
        reinterpret_cast<function>(::dlsym(::dlopen("libcuda.so.1", RTLD_NOW), "cuMemcpyDtoDAsync_v2"));
    const auto& it = *static_cast<driver_copy*>(self);
    return copy(it.to, it.from, it.bytes, stream);
  }
};

}  // namespace

void copy_on_device(void* to, const void* from, std::size_t bytes) {
  if (!on_gpus()) return copy(to, from, bytes);
  driver_copy what{to, from, bytes};
  const hpeAccess accesses[] = {{to, bytes, HPE_OUT}, {from, bytes, HPE_IN}};
  check(hpeEnqueueLocked(0, driver_copy::queue, &what, accesses, std::size(accesses)));
}

}  // namespace hpe::bench
