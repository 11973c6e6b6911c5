#include "runtime/core/api/soft_cuda.h"

#include <dlfcn.h>

#include "runtime/base/error.h"

namespace hpe::core {

std::optional<soft_cuda> soft_cuda::find() {
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return std::nullopt;
  auto* const found = reinterpret_cast<enqueue_function*>(::dlsym(library, "hpe_enqueue_on_soft_devices"));
  ::dlclose(library);  // the program keeps it
  return found == nullptr ? std::nullopt : std::optional(soft_cuda(found));
}

void soft_cuda::enqueue(unsigned device, hpeEnqueueFunction function, void* argument) const {
  int result = 0;
  const char* const failed = enqueue_(device, function, argument, &result);
  HPE_REQUIRE(result == 0, HPE_ERROR_LAUNCH_FAILED,
              "the function that was to queue work on device {} returned {} instead of 0", device, result);
  HPE_REQUIRE(
      failed == nullptr, HPE_ERROR_LAUNCH_FAILED,
      "the function that was to queue work on device {} made a call that CUDA cannot capture ({}), for example it "
      "waited for its stream; hpeAcquire allows such calls",
      device, failed);
}

}  // namespace hpe::core
