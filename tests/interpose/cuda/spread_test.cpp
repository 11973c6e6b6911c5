// A program that is spread over the stand-in's two devices (HPE_SPREAD=1): its arrays move while it works, and all that
// writes them counts.
#include <cuda.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <future>
#include <vector>

#include "tests/interpose/cuda/driver_under_test.h"

namespace {

// A kernel that adds 1 to each 256th element and stays on one device: arrays that lie in parts come there.
const char* const code = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry stays(.param .u64 stays_0, .param .u32 stays_1) {
  .reg .pred %p<3>;
  .reg .b32 %r<9>;
  .reg .b64 %d<5>;
  mov.u32 %r0, %smid;
  ld.param.u64 %d0, [stays_0];
  ld.param.u32 %r1, [stays_1];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  shl.b32 %r6, %r5, 8;
  setp.ge.u32 %p0, %r6, %r1;
  @%p0 bra DONE;
  mul.wide.u32 %d1, %r6, 4;
  add.u64 %d2, %d0, %d1;
  ld.global.u32 %r7, [%d2];
  add.u32 %r8, %r7, 1;
  st.global.u32 [%d2], %r8;
DONE:
  ret;
}
)";

constexpr unsigned words = 1U << 22U;  // 16 MiB, of which each device gets a half at first
constexpr std::size_t bytes = words * sizeof(unsigned);

class Spread : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(stand_in::enter_device_0());
    ASSERT_EQ(cuModuleLoadData(&module_, code), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleGetFunction(&stays_, module_, "stays"), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&array_, bytes), CUDA_SUCCESS);
    ASSERT_EQ(device_of(array_ + bytes - 4), 1) << "the test needs arrays in parts";
    values_.resize(words);
    for (unsigned n = 0; n < words; ++n) values_[n] = n * 2654435761U;
  }
  void TearDown() override {
    EXPECT_EQ(cuMemFree(array_), CUDA_SUCCESS);
    EXPECT_EQ(cuModuleUnload(module_), CUDA_SUCCESS);
  }

  // The device that has a byte, as the driver itself says.
  static int device_of(CUdeviceptr at) {
    int device = -1;
    stand_in::find<CUresult(void*, CUpointer_attribute, CUdeviceptr)>("cuPointerGetAttribute")(
        &device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at);
    return device;
  }
  void launch() {
    unsigned count = words;
    void* parameters[] = {&array_, &count};
    ASSERT_EQ(cuLaunchKernel(stays_, words / 256 / 64, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr), CUDA_SUCCESS);
    for (unsigned n = 0; n < words; n += 256) ++values_[n];
  }
  void expect_values() const {
    std::vector<unsigned> there(words);
    ASSERT_EQ(cuMemcpyDtoH(there.data(), array_, bytes), CUDA_SUCCESS);
    EXPECT_TRUE(there == values_);
  }
  [[nodiscard]] void* memory() const { return reinterpret_cast<void*>(array_); }

  CUmodule module_ = nullptr;
  CUfunction stays_ = nullptr;
  CUdeviceptr array_ = 0;
  std::vector<unsigned> values_;
};

// An array that nobody has written moves without its bytes, at the first launch.
TEST_F(Spread, CallsOfLibcFillAnArray) {
  const int file = ::memfd_create("values", MFD_CLOEXEC);
  ASSERT_EQ(::pwrite(file, values_.data(), bytes, 0), static_cast<ssize_t>(bytes));
  // The whole array, whose bytes the driver knows as two allocations.
  EXPECT_EQ(::pread(file, memory(), bytes, 0), static_cast<ssize_t>(bytes));
  ASSERT_NO_FATAL_FAILURE(launch());
  expect_values();
  ::close(file);
}

TEST_F(Spread, CpuCodeFillsAnArray) {
  std::copy(values_.begin(), values_.end(), static_cast<unsigned*>(memory()));
  ASSERT_NO_FATAL_FAILURE(launch());
  expect_values();
}

// The last bytes of the array have no memory for a moment, in which another thread copies to them.
TEST_F(Spread, AnArrayMovesWhileNoOtherThreadQueuesWork) {
  using namespace std::chrono_literals;
  const std::vector<unsigned> ones(words, 1);
  std::promise<void> ready, has_no_memory;
  std::future<CUresult> copied = std::async(std::launch::async, [&] {
    stand_in::enter_device_0();
    ready.set_value();
    has_no_memory.get_future().wait();
    return cuMemcpyHtoD(array_, ones.data(), bytes);
  });
  ready.get_future().wait();
  bool moved = false;
  std::function<void()> copy = [&] {
    moved = true;
    has_no_memory.set_value();
    copied.wait_for(50ms);
  };
  stand_in::meanwhile("cuMemRelease", copy);
  ASSERT_NO_FATAL_FAILURE(launch());
  ASSERT_TRUE(moved);
  EXPECT_EQ(copied.get(), CUDA_SUCCESS);
  EXPECT_EQ(device_of(array_ + bytes - 4), 0);
}

}  // namespace
