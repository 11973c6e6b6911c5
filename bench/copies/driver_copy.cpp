#include "bench/copies/driver_copy.h"

#include "bench/common/driver_calls.h"
#include "runtime/device/cuda/open.h"

namespace hpe::bench {

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
