#pragma once

#include <cuda.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/interpose/gpu/driver_under_test.h"

namespace stand_in {

// `stays` adds 1 to each 256th element, on one device. In `adds_up`, each thread whose flag is set adds up each eighth
// element of an array. The prediction does not know the flags, so it spreads this kernel, and each device gets a copy
// of the array. In `deals`, each row of blocks adds 1 to elements of the whole array; a word in memory is the number of
// repetitions. The prediction does not know this word either, so hpe distributes the array over the devices.
inline const char* const spread_code = R"(.version 8.0
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
.visible .entry deals(.param .u64 deals_0, .param .u64 deals_1) {
  .reg .pred %p<3>;
  .reg .b32 %r<9>;
  .reg .b64 %d<8>;
  ld.param.u64 %d0, [deals_0];
  ld.param.u64 %d1, [deals_1];
  ld.global.u32 %r0, [%d1];
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %d2, %r1, 16384;
  add.u64 %d3, %d0, %d2;
  mov.u32 %r2, 0;
OUTER:
  setp.ge.u32 %p0, %r2, %r0;
  @%p0 bra DONE;
  mul.wide.u32 %d4, %r2, 1024;
  add.u64 %d5, %d3, %d4;
  mov.u32 %r3, 0;
INNER:
  setp.ge.u32 %p1, %r3, %r0;
  @%p1 bra NEXT;
  mul.wide.u32 %d6, %r3, 32;
  add.u64 %d7, %d5, %d6;
  ld.global.u32 %r4, [%d7];
  add.u32 %r5, %r4, 1;
  st.global.u32 [%d7], %r5;
  add.u32 %r3, %r3, 1;
  bra INNER;
NEXT:
  add.u32 %r2, %r2, 1;
  bra OUTER;
DONE:
  ret;
}
.visible .entry adds_up(.param .u64 adds_up_0, .param .u64 adds_up_1, .param .u64 adds_up_2, .param .u32 adds_up_3) {
  .reg .pred %p<3>;
  .reg .b32 %r<10>;
  .reg .b64 %d<8>;
  ld.param.u64 %d0, [adds_up_0];
  ld.param.u64 %d1, [adds_up_1];
  ld.param.u64 %d2, [adds_up_2];
  ld.param.u32 %r0, [adds_up_3];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  mul.wide.u32 %d3, %r4, 4;
  add.u64 %d4, %d0, %d3;
  ld.global.u32 %r5, [%d4];
  mov.u32 %r6, 0;
  setp.eq.u32 %p0, %r5, 0;
  @%p0 bra STORE;
  mov.u32 %r7, 0;
LOOP:
  mul.wide.u32 %d5, %r7, 32;
  add.u64 %d6, %d1, %d5;
  ld.global.u32 %r8, [%d6];
  add.u32 %r6, %r6, %r8;
  add.u32 %r7, %r7, 1;
  setp.lt.u32 %p1, %r7, %r0;
  @%p1 bra LOOP;
STORE:
  add.u64 %d7, %d2, %d3;
  st.global.u32 [%d7], %r6;
  ret;
}
)";

constexpr unsigned words = 1U << 22U;  // 16 MiB
constexpr std::size_t bytes = words * sizeof(unsigned);
constexpr unsigned threads = 1U << 16U, added_up = 1U << 17U;

/// A program that is spread over the stand-in's two devices. It has an array, which launches have distributed over the
/// devices, and kernels that use the array.
class Spread : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(stand_in::enter_device_0());
    ASSERT_NO_FATAL_FAILURE(prepare());
    values_.resize(words);
    for (unsigned n = 0; n < words; ++n) values_[n] = n * 2654435761U;
  }
  void TearDown() override {
    for (const CUdeviceptr m : {array_, flags_, sums_}) EXPECT_EQ(cuMemFree(m), CUDA_SUCCESS);
    EXPECT_EQ(cuModuleUnload(module_), CUDA_SUCCESS);
  }

  void prepare() {
    ASSERT_EQ(cuModuleLoadData(&module_, spread_code), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleGetFunction(&stays_, module_, "stays"), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleGetFunction(&adds_up_, module_, "adds_up"), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&array_, bytes), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleGetFunction(&deals_, module_, "deals"), CUDA_SUCCESS);
    ASSERT_EQ(device_of(array_ + bytes - 4), 0) << "a new array is on the program's device";
    ASSERT_EQ(cuMemAlloc(&sums_, threads * sizeof(unsigned)), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&flags_, threads * sizeof(unsigned)), CUDA_SUCCESS);
    ASSERT_NO_FATAL_FAILURE(set_flags());
    ASSERT_NO_FATAL_FAILURE(deal_out());
  }
  // Sets the flags of the first and the last thread.
  void set_flags() const {
    ASSERT_EQ(cuMemsetD32(flags_, 0, threads), CUDA_SUCCESS);
    for (const unsigned thread : {0U, threads - 1})
      ASSERT_EQ(cuMemsetD32(flags_ + thread * sizeof(unsigned), 1, 1), CUDA_SUCCESS);
  }
  // Launches `deals` until the array is distributed. The planner counts the time that is lost on one device from the
  // third launch on, and moves the array when the launches have lost as much time as the move takes.
  void deal_out() {
    for (int n = 0; n < 3 || (n < 20 && device_of(array_ + bytes - 4) == 0); ++n)
      ASSERT_NO_FATAL_FAILURE(launch_deals());
    ASSERT_EQ(device_of(array_ + bytes - 4), 1) << "the test needs arrays in parts";
    ASSERT_EQ(device_of(array_), 0);
  }
  // Launches a kernel without PTX until the whole array is on the first device again.
  void come_home() {
    static const stand_in::kernel uses{[](const std::uint64_t*) {}, 1};
    auto* const function = reinterpret_cast<CUfunction>(const_cast<stand_in::kernel*>(&uses));
    void* parameters[] = {&array_};
    for (int n = 0; n < 20 && device_of(array_ + bytes - 4) != 0; ++n)
      ASSERT_EQ(cuLaunchKernel(function, 2, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), CUDA_SUCCESS);
    ASSERT_EQ(device_of(array_ + bytes - 4), 0);
  }
  void launch_deals() {
    CUdeviceptr none = flags_ + sizeof(unsigned);
    void* parameters[] = {&array_, &none};
    ASSERT_EQ(cuLaunchKernel(deals_, bytes / 16384, 64, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), CUDA_SUCCESS);
  }

  // Returns the device whose memory has a byte, according to the driver itself.
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
  // Launches `adds_up` for `added` elements, and expects the sum `sum` in the threads whose flag is set.
  void expect_sums(unsigned added, unsigned sum, CUstream stream = nullptr) {
    const unsigned on_other = stand_in::calls("launches on 1");
    void* parameters[] = {&flags_, &array_, &sums_, &added};
    ASSERT_EQ(cuLaunchKernel(adds_up_, threads / 64, 1, 1, 64, 1, 1, 0, stream, parameters, nullptr), CUDA_SUCCESS);
    std::vector<unsigned> sums(threads);
    ASSERT_EQ(cuMemcpyDtoH(sums.data(), sums_, threads * sizeof(unsigned)), CUDA_SUCCESS);
    EXPECT_EQ(sums.front(), sum);
    EXPECT_EQ(sums.back(), sum);
    EXPECT_EQ(stand_in::calls("launches on 1"), on_other + 1) << "the launch was not spread";
  }
  void expect_values() const {
    std::vector<unsigned> there(words);
    ASSERT_EQ(cuMemcpyDtoH(there.data(), array_, bytes), CUDA_SUCCESS);
    EXPECT_TRUE(there == values_);
  }
  [[nodiscard]] void* memory() const { return reinterpret_cast<void*>(array_); }

  CUmodule module_ = nullptr;
  CUfunction stays_ = nullptr, adds_up_ = nullptr, deals_ = nullptr;
  CUdeviceptr array_ = 0, flags_ = 0, sums_ = 0;
  std::vector<unsigned> values_;
};

}  // namespace stand_in
