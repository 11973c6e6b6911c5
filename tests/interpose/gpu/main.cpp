// Sets HPE_CUDA_DRIVER to the stand-in before the first call of the driver, at which hpe reads the environment.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>

#include <cstdlib>

#include "tests/interpose/gpu/driver_under_test.h"

namespace stand_in {

void* find_entry(const char* name) {
  const auto behind = reinterpret_cast<void* (*)(const char*)>(::dlsym(RTLD_DEFAULT, "hpe_cuda_driver_entry"));
  return behind(name);
}

std::string file() { return HPE_TEST_STAND_IN; }
unsigned calls(const char* symbol) { return find<count_function>("stand_in_count")(symbol); }
std::byte* memory(CUdeviceptr address) {
  return static_cast<std::byte*>(find<memory_function>("stand_in_memory")(address));
}
void pause(bool paused) { find<pause_function>("stand_in_pause")(paused ? 1 : 0); }

void meanwhile(const char* symbol, std::function<void()>& happen) {
  find<meanwhile_function>("stand_in_meanwhile")(
      symbol, [](void* given) { (*static_cast<std::function<void()>*>(given))(); }, &happen);
}

void fail(const char* symbol, CUresult result) { find<fail_function>("stand_in_fail")(symbol, 0, result); }

void enter_device_0() {
  CUcontext context = nullptr;
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
}

}  // namespace stand_in

int main(int argc, char** argv) {
  ::setenv("HPE_CUDA_DRIVER", HPE_TEST_STAND_IN, 1);  // NOLINT(concurrency-mt-unsafe): before any thread
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
