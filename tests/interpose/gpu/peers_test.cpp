// Copies between devices that cannot access each other's memory. The streams of the stand-in are independent, so the
// tests fail if work is queued in the wrong order.
#include <cuda.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>
#include <thread>
#include <utility>

#include "tests/interpose/gpu/driver_under_test.h"

namespace {

constexpr std::size_t MiB = std::size_t{1} << 20;

// A kernel that increments each 64-bit word of an array.
const stand_in::kernel increment{[](const std::uint64_t* parameters) {
                                   auto* const words =
                                       reinterpret_cast<std::uint64_t*>(stand_in::memory(parameters[0]));
                                   for (std::uint64_t i = 0; i < parameters[1]; ++i) ++words[i];
                                 },
                                 2};

class Peers : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    for (int d = 0; d < 2; ++d) {
      ASSERT_EQ(cuDevicePrimaryCtxRetain(&context[d], d), CUDA_SUCCESS);
      ASSERT_EQ(cuCtxSetCurrent(context[d]), CUDA_SUCCESS);
      ASSERT_EQ(cuMemAlloc(&memory[d], bytes), CUDA_SUCCESS);
      ASSERT_EQ(cuStreamCreate(&stream[d], CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    }
    ASSERT_EQ(cuCtxSetCurrent(context[0]), CUDA_SUCCESS);
    RecordProperty("seed", std::to_string(seed));
    expected.resize(words);
    std::mt19937_64 source(seed);
    for (std::uint64_t& w : expected) w = source();
    ASSERT_EQ(cuMemcpyHtoD(memory[0], expected.data(), bytes), CUDA_SUCCESS);
    ASSERT_EQ(cuMemsetD8(memory[1], 0xee, bytes), CUDA_SUCCESS);
  }
  void TearDown() override {
    stand_in::pause(false);
    for (int d = 0; d < 2; ++d) {
      EXPECT_EQ(cuCtxSetCurrent(context[d]), CUDA_SUCCESS);
      EXPECT_EQ(cuStreamDestroy(stream[d]), CUDA_SUCCESS);
      EXPECT_EQ(cuMemFree(memory[d]), CUDA_SUCCESS);
      EXPECT_EQ(cuDevicePrimaryCtxRelease(d), CUDA_SUCCESS);
    }
    EXPECT_EQ(cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
  }

  CUresult launch_increment(int device) {
    CUdeviceptr at = memory[device];
    std::uint64_t count = words;
    void* parameters[] = {&at, &count};
    auto* const function = reinterpret_cast<CUfunction>(const_cast<stand_in::kernel*>(&increment));
    return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream[device], parameters, nullptr);
  }
  void synchronize() {
    for (const CUcontext c : context) {
      ASSERT_EQ(cuCtxPushCurrent(c), CUDA_SUCCESS);
      ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
      CUcontext popped = nullptr;
      ASSERT_EQ(cuCtxPopCurrent(&popped), CUDA_SUCCESS);
    }
  }
  [[nodiscard]] std::size_t wrong_words(int device, std::uint64_t more) {
    const auto* const have = reinterpret_cast<const std::uint64_t*>(stand_in::memory(memory[device]));
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < words; ++i) wrong += have[i] != expected[i] + more ? 1 : 0;
    return wrong;
  }

  static constexpr std::size_t bytes = 60 * MiB + 8 * 77;  // more bytes than all staging buffers have
  static constexpr std::size_t words = bytes / 8;
  const std::uint64_t seed = std::random_device{}();
  CUcontext context[2]{};
  CUdeviceptr memory[2]{};
  CUstream stream[2]{};
  std::vector<std::uint64_t> expected;
};

TEST_F(Peers, ACopyStandsInTheOrderOfItsStream) {
  const unsigned direct = stand_in::calls("cuMemcpyPeerAsync");
  stand_in::pause(true);
  ASSERT_EQ(launch_increment(0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyPeerAsync(memory[1], context[1], memory[0], context[0], bytes, stream[0]), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD8Async(memory[0], 0x11, bytes, stream[0]), CUDA_SUCCESS) << "the copy returns at once";
  stand_in::pause(false);
  ASSERT_EQ(cuStreamSynchronize(stream[0]), CUDA_SUCCESS);
  EXPECT_EQ(wrong_words(1, 1), 0U) << "seed " << seed;
  EXPECT_EQ(stand_in::calls("cuMemcpyPeerAsync"), direct) << "the driver's own staging was used";
}

TEST_F(Peers, EveryEntryIsStaged) {
  const auto all = [](CUstream in, CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context) {
    CUDA_MEMCPY3D_PEER planes{};
    planes.srcMemoryType = planes.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    planes.srcDevice = from;
    planes.srcContext = from_context;
    planes.dstDevice = to;
    planes.dstContext = to_context;
    planes.WidthInBytes = planes.srcPitch = planes.dstPitch = bytes / 4;
    planes.Height = planes.srcHeight = planes.dstHeight = 2;
    planes.Depth = 2;
    return std::vector<std::function<CUresult()>>{
        [=] { return cuMemcpyPeer(to, to_context, from, from_context, bytes); },
        [=] { return cuMemcpyPeerAsync(to, to_context, from, from_context, bytes, in); },
        [=] { return cuMemcpyDtoD(to, from, bytes); },
        [=] { return cuMemcpyDtoDAsync(to, from, bytes, in); },
        [=] { return cuMemcpy(to, from, bytes); },
        [=] { return cuMemcpyAsync(to, from, bytes, in); },
        [=] { return cuMemcpy3DPeer(&planes); },
        [=] { return cuMemcpy3DPeerAsync(&planes, in); },
    };
  };
  const char* const names[] = {"cuMemcpyPeer", "cuMemcpyPeerAsync", "cuMemcpyDtoD_v2", "cuMemcpyDtoDAsync_v2",
                               "cuMemcpy",     "cuMemcpyAsync",     "cuMemcpy3DPeer",  "cuMemcpy3DPeerAsync"};
  const auto calls = all(stream[0], memory[1], context[1], memory[0], context[0]);
  for (const bool reached : {false, true}) {
    if (reached) {
      ASSERT_EQ(cuCtxEnablePeerAccess(context[1], 0), CUDA_SUCCESS);
    }
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (reached && std::string(names[i]) == "cuMemcpyAsync") continue;  // hpe's own copies call this entry
      ASSERT_EQ(cuMemsetD8(memory[1], 0xee, bytes), CUDA_SUCCESS);
      synchronize();
      const unsigned direct = stand_in::calls(names[i]);
      ASSERT_EQ(calls[i](), CUDA_SUCCESS) << names[i];
      if (std::string(names[i]) != "cuMemcpyAsync") {
        EXPECT_EQ(stand_in::calls(names[i]), direct + (reached ? 1 : 0)) << names[i];
      }
      synchronize();
      EXPECT_EQ(wrong_words(1, 0), 0U) << names[i] << " seed " << seed;
    }
  }
  ASSERT_EQ(cuCtxDisablePeerAccess(context[1]), CUDA_SUCCESS);
}

TEST_F(Peers, RowsWithGapsAreTheDrivers) {
  constexpr std::size_t width = MiB - 4096, rows = 50;
  constexpr std::pair<std::size_t, std::size_t> pitches[] = {{MiB, MiB}, {width, MiB}, {MiB, width}};
  for (const auto& [from_pitch, to_pitch] : pitches) {
    CUDA_MEMCPY3D_PEER box{};
    box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    box.srcDevice = memory[0];
    box.srcContext = context[0];
    box.srcPitch = from_pitch;
    box.dstDevice = memory[1];
    box.dstContext = context[1];
    box.dstPitch = to_pitch;
    box.WidthInBytes = width;
    box.Height = box.srcHeight = box.dstHeight = rows;
    box.Depth = 1;
    for (const bool with_stream : {false, true}) {
      ASSERT_EQ(cuMemsetD8(memory[1], 0xee, bytes), CUDA_SUCCESS);
      synchronize();
      ASSERT_EQ(with_stream ? cuMemcpy3DPeerAsync(&box, stream[0]) : cuMemcpy3DPeer(&box), CUDA_SUCCESS);
      synchronize();
      const auto* const have = reinterpret_cast<const unsigned char*>(stand_in::memory(memory[1]));
      const auto* const source = reinterpret_cast<const unsigned char*>(expected.data());
      std::size_t wrong = 0;
      for (std::size_t at = 0; at < bytes; ++at) {
        const std::size_t row = at / to_pitch, column = at % to_pitch;
        const bool is_copied = row < rows && column < width;
        wrong += have[at] != (is_copied ? source[row * from_pitch + column] : 0xee) ? 1 : 0;
      }
      EXPECT_EQ(wrong, 0U) << "pitches " << from_pitch << " and " << to_pitch << ", seed " << seed;
    }
  }
}

TEST_F(Peers, WithoutAStreamItComesAfterAllWorkOfBothDevices) {
  ASSERT_EQ(launch_increment(0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(context[1]), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD8Async(memory[1], 0x11, bytes, stream[1]), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyPeer(memory[1], context[1], memory[0], context[0], bytes), CUDA_SUCCESS);
  ASSERT_EQ(launch_increment(1), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream[1]), CUDA_SUCCESS);
  EXPECT_EQ(wrong_words(1, 2), 0U) << "seed " << seed;
}

TEST_F(Peers, BothWaysAtOnce) {
  CUdeviceptr back = 0;
  ASSERT_EQ(cuMemAlloc(&back, bytes), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyPeer(memory[1], context[1], memory[0], context[0], bytes), CUDA_SUCCESS);
  std::thread other([&] {
    EXPECT_EQ(cuCtxSetCurrent(context[1]), CUDA_SUCCESS);
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(cuMemcpyPeerAsync(back, context[0], memory[1], context[1], bytes, stream[1]), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(stream[1]), CUDA_SUCCESS);
  });
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(cuMemcpyPeerAsync(memory[1], context[1], memory[0], context[0], bytes, stream[0]), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream[0]), CUDA_SUCCESS);
  other.join();
  EXPECT_EQ(wrong_words(1, 0), 0U) << "seed " << seed;
  EXPECT_EQ(std::memcmp(stand_in::memory(back), expected.data(), bytes), 0) << "seed " << seed;
  EXPECT_EQ(cuMemFree(back), CUDA_SUCCESS);
}

TEST_F(Peers, GoesOnAfterAReset) {
  for (int device = 0; device < 2; ++device) {
    ASSERT_EQ(cuMemcpyPeer(memory[1], context[1], memory[0], context[0], bytes), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxReset(device), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context[device], device), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context[device]), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&memory[device], bytes), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamCreate(&stream[device], CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    if (device == 0) {
      ASSERT_EQ(cuMemcpyHtoD(memory[0], expected.data(), bytes), CUDA_SUCCESS);
    }
    ASSERT_EQ(cuMemcpyPeerAsync(memory[1], context[1], memory[0], context[0], bytes, stream[device]), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(stream[device]), CUDA_SUCCESS);
    EXPECT_EQ(wrong_words(1, 0), 0U) << "seed " << seed;
  }
}

TEST_F(Peers, SmallAndWrongOnesAreTheDrivers) {
  const unsigned before = stand_in::calls("cuMemcpyPeer");
  EXPECT_EQ(cuMemcpyPeer(memory[1], context[1], memory[0], context[0], MiB - 1), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyPeer(memory[1] + 1, context[1], memory[0], context[0], bytes), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(stand_in::calls("cuMemcpyPeer"), before + 2);
}

}  // namespace
