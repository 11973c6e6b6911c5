// Many threads call the driver, and hooks decode the calls and offer them to kinds of memory, while other threads
// register kinds and end streams and contexts. The kinds of memory are fakes, whose memory consists only of addresses.
// All other code is that of interpose/gpu, with the stand-in as the driver. The code is compiled into this program, so
// that ThreadSanitizer can check it.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "interpose/gpu/hooks/memory_kind.h"
#include "tests/interpose/gpu/driver_under_test.h"

// This program and libhpe.so both contain some variables of interpose/gpu, because the linker adds whole object files.
// AddressSanitizer reads this function's result before the program starts.
extern "C" [[gnu::visibility("default")]] const char* __asan_default_options();  // NOLINT(*reserved-identifier*)
const char* __asan_default_options() { return "detect_odr_violation=0"; }        // NOLINT(*reserved-identifier*)

namespace {

using namespace hpe::cuda_hooks;

constexpr std::size_t size = std::size_t{1} << 20, pitch = 4096;

/// A kind of memory in a range of addresses that the driver does not know. Counts the calls that hooks offer to it.
class fake_memory final : public memory_kind {
 public:
  explicit fake_memory(unsigned number) : base_((CUdeviceptr{number} + 1) << 40) {}

  [[nodiscard]] CUdeviceptr base() const { return base_; }

  std::optional<CUresult> run(const device_call& call, queue_part queue) override {
    if (call.what == device_call::family::launch || !(has(call.to) || has(call.from))) return std::nullopt;
    const std::lock_guard lock(mutex_);
    bytes_ += call.shape.bytes();
    ++calls_;
    (void)queue;  // not called, because the driver would refuse the addresses
    return CUDA_SUCCESS;
  }
  std::optional<device_range> range_at(CUdeviceptr address) override {
    return has(address) ? std::optional(device_range{base_, size}) : std::nullopt;
  }
  std::optional<CUresult> attribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) override {
    if (!has(address) || attribute != CU_POINTER_ATTRIBUTE_RANGE_SIZE) return std::nullopt;
    *static_cast<std::size_t*>(value) = size;
    return CUDA_SUCCESS;
  }
  std::optional<CUresult> free(CUdeviceptr address) override {
    if (address != base_) return std::nullopt;
    const std::lock_guard lock(mutex_);
    ++frees_;
    return CUDA_SUCCESS;
  }
  void ends(CUstream stream) override {
    const std::lock_guard lock(mutex_);
    ++ended_streams_[stream];
  }
  void ends(CUcontext context) override {
    const std::lock_guard lock(mutex_);
    if (context != nullptr) ++ended_contexts_;
  }

  struct told {
    std::size_t calls = 0, bytes = 0, frees = 0, contexts = 0, streams = 0;
  };
  [[nodiscard]] told so_far() const {
    const std::lock_guard lock(mutex_);
    std::size_t streams = 0;
    for (const auto& [stream, times] : ended_streams_) streams += times;
    return {calls_, bytes_, frees_, ended_contexts_, streams};
  }

 private:
  [[nodiscard]] bool has(CUdeviceptr address) const { return address - base_ < size; }

  const CUdeviceptr base_;
  mutable std::mutex mutex_;
  std::size_t calls_ = 0, bytes_ = 0, frees_ = 0, ended_contexts_ = 0;
  std::map<CUstream, std::size_t> ended_streams_;
};

/// Makes calls that use the memory of a registered kind. Returns the number of bytes in copies and fills.
std::size_t use(CUdeviceptr memory, CUstream stream) {
  const std::vector<std::uint8_t> host(size);
  EXPECT_EQ(cuMemcpyHtoDAsync(memory, host.data(), size, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD32Async(memory, 7, size / 4, stream), CUDA_SUCCESS);
  CUDA_MEMCPY2D rows{};
  rows.srcMemoryType = CU_MEMORYTYPE_HOST;
  rows.srcHost = host.data();
  rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  rows.dstDevice = memory;
  rows.srcPitch = rows.dstPitch = pitch;
  rows.WidthInBytes = 100;
  rows.Height = 30;
  EXPECT_EQ(cuMemcpy2DAsync(&rows, stream), CUDA_SUCCESS);
  CUDA_MEMCPY3D_PEER planes{};
  planes.srcMemoryType = planes.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  planes.srcDevice = planes.dstDevice = memory;
  planes.srcPitch = planes.dstPitch = pitch;
  planes.srcHeight = planes.dstHeight = 8;
  planes.WidthInBytes = 64;
  planes.Height = 4;
  planes.Depth = 3;
  EXPECT_EQ(cuMemcpy3DPeerAsync(&planes, stream), CUDA_SUCCESS);
  std::size_t told = 0;
  EXPECT_EQ(cuPointerGetAttribute(&told, CU_POINTER_ATTRIBUTE_RANGE_SIZE, memory + 5), CUDA_SUCCESS);
  EXPECT_EQ(told, size);
  EXPECT_EQ(cuMemFree(memory), CUDA_SUCCESS);
  return 2 * size + 100 * 30 + 64 * 4 * 3;
}

TEST(Front, ThreadsCallWhileKindsAreRegisteredAndStreamsEnd) {
  constexpr unsigned threads = 4, rounds = 20;
  stand_in::enter_device_0();
  // Never destroyed, because the kinds stay registered until the process has ended.
  auto& early = *new fake_memory(1);
  std::array<fake_memory*, 3> late{};
  for (unsigned n = 0; n < late.size(); ++n) late[n] = new fake_memory(2 + n);
  memory_kinds::add(early);
  std::array<std::atomic<bool>, late.size()> registered{};
  std::atomic<std::size_t> early_bytes{0};
  std::array<std::atomic<std::size_t>, late.size()> late_bytes{};
  std::vector<std::thread> all;
  for (unsigned t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      stand_in::enter_device_0();
      CUcontext first = nullptr;
      ASSERT_EQ(cuCtxGetCurrent(&first), CUDA_SUCCESS);
      for (unsigned round = 0; round < rounds; ++round) {
        CUstream stream = nullptr;
        ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        early_bytes += use(early.base(), stream);
        const unsigned n = (round + t) % late.size();
        if (registered[n].load()) late_bytes[n] += use(late[n]->base(), stream);
        // Memory of the driver, which concerns no kind.
        CUdeviceptr own = 0;
        EXPECT_EQ(cuMemAlloc(&own, size), CUDA_SUCCESS);
        EXPECT_EQ(cuMemsetD32Async(own, round, size / 4, stream), CUDA_SUCCESS);
        unsigned word = ~0U;
        EXPECT_EQ(cuMemcpyDtoHAsync(&word, own + size - 4, 4, stream), CUDA_SUCCESS);
        EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
        EXPECT_EQ(word, round);
        EXPECT_EQ(cuMemFree(own), CUDA_SUCCESS);
        EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
        CUcontext context = nullptr;
        ASSERT_EQ(cuCtxCreate(&context, nullptr, 0, 0), CUDA_SUCCESS);
        EXPECT_EQ(cuCtxDestroy(context), CUDA_SUCCESS);
        ASSERT_EQ(cuCtxSetCurrent(first), CUDA_SUCCESS);
      }
    });
  for (unsigned n = 0; n < late.size(); ++n) {
    // Registers each kind at another time while the threads work.
    while (early.so_far().streams < (n + 1) * threads * rounds / 8) std::this_thread::yield();
    memory_kinds::add(*late[n]);
    registered[n] = true;
  }
  for (std::thread& each : all) each.join();
  const fake_memory::told told = early.so_far();
  EXPECT_EQ(told.streams, threads * rounds);
  EXPECT_EQ(told.contexts, threads * rounds);
  EXPECT_EQ(told.frees, threads * rounds);
  EXPECT_EQ(told.calls, threads * rounds * 4);
  EXPECT_EQ(told.bytes, early_bytes.load());
  for (unsigned n = 0; n < late.size(); ++n) {
    EXPECT_EQ(late[n]->so_far().bytes, late_bytes[n].load()) << n;
    EXPECT_GT(late_bytes[n].load(), 0U) << "the kind of memory was registered too late: " << n;
    EXPECT_LE(late[n]->so_far().streams, threads * rounds);
  }
}

}  // namespace
