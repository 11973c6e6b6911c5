// Allocations of host memory fail while runtime/device/cuda pins host memory for the devices. The stand-in is the
// driver.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <memory>

#include "runtime/device/cuda/cuda_pinned_memory.h"
#include "tests/interpose/gpu/driver_under_test.h"
#include "tests/interpose/gpu/failing_memory.h"

namespace {

using hpe::device::cuda::cuda_pinned_memory;

TEST(PinnedHostMemory, ThatCannotBeNotedIsNotPinned) {
  constexpr std::size_t bytes = std::size_t{4} << 20;
  ASSERT_NO_FATAL_FAILURE(stand_in::enter_device_0());
  const hpe::device::cuda::driver cu;
  const int file = ::memfd_create("pinned", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(file, bytes), 0);
  void* const space = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(space, MAP_FAILED);
  const auto address = reinterpret_cast<std::uintptr_t>(space);
  {
    cuda_pinned_memory pinned(cu, {address, bytes, 1}, {bytes, bytes},
                              {[](hpe::timepoint) { return true; }, [](hpe::timepoint) {}, [] { return CUcontext{}; }});
    unsigned failed = 0;
    for (bool done = false; !done;) {
      const unsigned registered = stand_in::calls("cuMemHostRegister") - stand_in::calls("cuMemHostUnregister");
      failing_memory::arm(++failed);
      try {
        pinned.insert(address, bytes, file, 0);
        done = true;
      } catch (const std::bad_alloc&) {
        EXPECT_FALSE(pinned.find(address)) << "allocation " << failed;
        EXPECT_EQ(stand_in::calls("cuMemHostRegister") - stand_in::calls("cuMemHostUnregister"), registered)
            << "pages stay pinned after allocation " << failed;
      } catch (const hpe::error& e) {
        (void)failing_memory::disarm();
        FAIL() << e.what() << ", after allocation " << failed - 1;
      }
      (void)failing_memory::disarm();
    }
    EXPECT_GE(failed, 3u) << "storing the range and its pinned range needs allocations";
    EXPECT_EQ(pinned.find(address), address + bytes);
    pinned.erase(address, bytes);
    EXPECT_FALSE(pinned.find(address));
  }
  ::munmap(space, bytes);
  ::close(file);
  EXPECT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
}

}  // namespace
