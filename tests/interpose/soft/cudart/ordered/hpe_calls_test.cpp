// Programs that use the CUDA runtime may also call hpe's own functions.

#include "common.h"
#include "hpe/hpe.h"

namespace {

int current_device_of_hpe() {
  int device = -1;
  EXPECT_EQ(hpeGetDevice(&device), HPE_SUCCESS);
  return device;
}

TEST(HpeCalls, UseTheDeviceThatTheThreadHasChosen) {
  ASSERT_CUDA(cudaSetDevice(1));
  EXPECT_EQ(current_device_of_hpe(), 1);
  EXPECT_FAILS(cudaSetDevice(2), cudaErrorInvalidDevice);
  EXPECT_EQ(current_device_of_hpe(), 1);
  std::thread([] { EXPECT_EQ(current_device_of_hpe(), 0) << "in another thread"; }).join();
  void* memory = nullptr;
  ASSERT_EQ(hpeMalloc(&memory, 1000), HPE_SUCCESS);
  hpePointerInfo where{};
  EXPECT_EQ(hpeGetPointerInfo(memory, &where), HPE_SUCCESS);
  EXPECT_EQ(where.device, 1);
  EXPECT_EQ(hpeFree(memory), HPE_SUCCESS);
  ASSERT_CUDA(cudaSetDevice(0));
  EXPECT_EQ(current_device_of_hpe(), 0);
}

}  // namespace
