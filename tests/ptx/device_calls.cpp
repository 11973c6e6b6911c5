// The functions of the device that hpe itself executes (runtime/ptx/execution/calls): each is called here as a thread
// of a kernel calls it, without a kernel around it.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/ptx/execution/calls/device_queue.h"
#include "runtime/ptx/execution/calls/device_runtime.h"
#include "runtime/ptx/execution/calls/system_call.h"
#include "runtime/ptx/execution/thread_memory.h"
#include "runtime/ptx/text/parser.h"

namespace hpe::ptx::test {
namespace {

constexpr const char* kernels =
    ".version 8.6\n.target sm_75\n.address_size 64\n"
    ".visible .entry child(.param .u64 a, .param .u32 b, .param .u8 c) { ret; }\n"
    ".visible .entry narrow() .maxntid 96, 1, 1 { .shared .align 4 .b8 kept[4096]; .reg .u64 %rd<2>; mov.u64 %rd1, "
    "kept; ret; }\n"
    ".visible .func aid() { ret; }\n";

enum code : std::uint32_t {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  invalid_configuration = 9,
  invalid_function = 98,
};

constexpr std::uint64_t tail_stream = 3, other_stream = 0x1234;

class DeviceCalls : public ::testing::Test {
 protected:
  DeviceCalls() {
    around_.allocate = [this](std::size_t bytes) -> void* {
      if (bytes > most_) return nullptr;
      auto made = std::make_unique<std::uint8_t[]>(bytes);
      void* const memory = made.get();
      heap_[memory] = {std::move(made), bytes};
      return memory;
    };
    around_.release = [this](void* memory) { EXPECT_TRUE(memory == nullptr || heap_.erase(memory) == 1); };
    around_.print = [this](std::string_view text) { printed_ += text; };
    around_.queue = &queue_;
    around_.device = 2;
    around_.device_count = 5;
    configuration_.image = &image_;
    configuration_.kernel = &function_of("child");
    configuration_.surroundings = &around_;
    block_.configuration = &configuration_;
    block_.tid_x = tid_[0].data();
    block_.tid_y = tid_[1].data();
    block_.tid_z = tid_[2].data();
    block_.thread_count = 4;
    block_.nctaid = {3, 4, 5};
  }

  const function& function_of(const std::string& name) const { return *program_->functions.at(number_of(name)); }
  std::uint64_t address_of(const std::string& name) const {
    return image::address_of_function(static_cast<std::uint32_t>(number_of(name)));
  }
  std::size_t number_of(const std::string& name) const {
    std::size_t n = 0;
    while (program_->functions.at(n)->name != name) ++n;
    return n;
  }

  /// Calls a function with a result of `bytes` bytes (0: without result) and returns the result.
  template <class... Arguments>
  std::uint64_t call_sized(std::uint32_t bytes, const std::string& name, builtin how, const Arguments&... arguments) {
    function callee;
    callee.name = name;
    callee.system_call = how;
    alignas(16) std::array<std::uint8_t, 256> memory{};
    const auto add = [&](std::uint32_t size, bool is_result) {
      callee.formals_size = (callee.formals_size + 7) / 8 * 8;
      callee.formals.push_back({"", callee.formals_size, size, 8, is_result});
      callee.formals_size += size;
      return memory.data() + callee.formals.back().offset;
    };
    if (bytes != 0) std::memset(add(bytes, true), 0xee, 8);
    (std::memcpy(add(sizeof(Arguments), false), &arguments, sizeof(Arguments)), ...);
    call_system(block_, callee, memory.data());
    std::uint64_t result = 0;
    std::memcpy(&result, memory.data(), bytes);
    if (bytes == 4) {
      EXPECT_EQ(memory[4], 0xee) << name << " writes more than its result";
    }
    return result;
  }
  template <class... Arguments>
  std::uint32_t call(const std::string& name, const Arguments&... arguments) {
    return static_cast<std::uint32_t>(call_sized(4, "cuda" + name, builtin::device_runtime, arguments...));
  }
  template <class... Arguments>
  std::uint64_t call_for_address(const std::string& name, const Arguments&... arguments) {
    return call_sized(8, "__cudaCDP2" + name + "_ptsz", builtin::device_runtime, arguments...);
  }

  struct memory_of_heap {
    std::unique_ptr<std::uint8_t[]> bytes;
    std::size_t size = 0;
  };
  std::size_t most_ = 1 << 20;
  std::map<void*, memory_of_heap> heap_;
  std::string printed_;
  std::shared_ptr<const ptx::program> program_ = parse({kernels});
  image image_{program_, [](std::size_t, std::size_t) -> void* { throw std::bad_alloc(); }};
  surroundings around_;
  device_queue queue_{[this](void* memory) { around_.release(memory); }};
  launch_configuration configuration_;
  const std::array<std::array<std::uint32_t, 4>, 3> tid_{{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}}};
  block_context block_{};
};

std::vector<std::uint8_t> values(std::size_t count) {
  std::vector<std::uint8_t> result(count);
  std::iota(result.begin(), result.end(), std::uint8_t{1});
  return result;
}

// ---- copies and fills

TEST_F(DeviceCalls, ACopyRunsWhenTheGridHasEndedAndTouchesItsBytesOnly) {
  const auto from = values(64);
  std::vector<std::uint8_t> to(64, 0xff);
  EXPECT_EQ(call("MemcpyAsync", to.data() + 3, from.data() + 5, std::size_t{17}, 3, other_stream), success);
  EXPECT_EQ(to[3], 0xff);
  const auto queued = queue_.take();
  ASSERT_EQ(queued.children.size(), 1U);
  EXPECT_TRUE(queued.tails.empty());
  queued.children[0].copy_or_fill();
  for (std::size_t n = 0; n < to.size(); ++n) EXPECT_EQ(to[n], n >= 3 && n < 20 ? from[n + 2] : 0xff) << n;
}

TEST_F(DeviceCalls, OverlappingBytesAreCopiedAsIfTheyDidNotOverlap) {
  auto bytes = values(32);
  const auto before = bytes;
  EXPECT_EQ(call("MemcpyAsync", bytes.data() + 4, bytes.data(), std::size_t{20}, 3, other_stream), success);
  queue_.take().children.at(0).copy_or_fill();
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + 20, bytes.begin() + 4));
}

TEST_F(DeviceCalls, RowsAreCopiedAndFilledWithThePitchesOfBothSides) {
  const auto from = values(100);
  std::vector<std::uint8_t> to(100, 0xff);
  EXPECT_EQ(call("Memcpy2DAsync", to.data() + 1, std::size_t{20}, from.data() + 2, std::size_t{13}, std::size_t{7},
                 std::size_t{4}, 3, other_stream),
            success);
  EXPECT_EQ(call("Memset2DAsync", to.data() + 10, std::size_t{21}, 0x1a5, std::size_t{5}, std::size_t{3}, tail_stream),
            success);
  const auto queued = queue_.take();
  ASSERT_EQ(queued.children.size(), 1U);
  ASSERT_EQ(queued.tails.size(), 1U);
  queued.children[0].copy_or_fill();
  auto expected = std::vector<std::uint8_t>(100, 0xff);
  for (std::size_t row = 0; row < 4; ++row)
    for (std::size_t x = 0; x < 7; ++x) expected[1 + row * 20 + x] = from[2 + row * 13 + x];
  EXPECT_EQ(to, expected);
  queued.tails[0].copy_or_fill();
  for (std::size_t row = 0; row < 3; ++row)
    for (std::size_t x = 0; x < 5; ++x) expected[10 + row * 21 + x] = 0xa5;
  EXPECT_EQ(to, expected);
}

TEST_F(DeviceCalls, AFillWritesTheLowByteOfItsValue) {
  std::vector<std::uint8_t> to(16, 0xff);
  EXPECT_EQ(call("MemsetAsync", to.data() + 2, 0x307, std::size_t{9}, tail_stream), success);
  const auto queued = queue_.take();
  EXPECT_TRUE(queued.children.empty());
  queued.tails.at(0).copy_or_fill();
  for (std::size_t n = 0; n < to.size(); ++n) EXPECT_EQ(to[n], n >= 2 && n < 11 ? 7 : 0xff) << n;
}

TEST_F(DeviceCalls, ACopyOfNothingSucceedsAndIsNotQueued) {
  std::uint8_t byte = 0;
  std::uint8_t* const none = nullptr;
  EXPECT_EQ(call("MemcpyAsync", none, none, std::size_t{0}, 3, other_stream), success);
  EXPECT_EQ(call("MemsetAsync", none, 1, std::size_t{0}, other_stream), success);
  EXPECT_EQ(call("Memset2DAsync", none, std::size_t{8}, 1, std::size_t{4}, std::size_t{0}, other_stream), success);
  EXPECT_EQ(call("Memcpy2DAsync", none, std::size_t{8}, none, std::size_t{8}, std::size_t{0}, std::size_t{3}, 3,
                 other_stream),
            success);
  EXPECT_EQ(call("MemcpyAsync", none, &byte, std::size_t{1}, 3, other_stream), invalid_value);
  EXPECT_EQ(call("MemcpyAsync", &byte, none, std::size_t{1}, 3, other_stream), invalid_value);
  EXPECT_EQ(call("MemsetAsync", none, 1, std::size_t{1}, other_stream), invalid_value);
  const auto queued = queue_.take();
  EXPECT_TRUE(queued.children.empty());
  EXPECT_TRUE(queued.tails.empty());
}

// ---- launches

TEST_F(DeviceCalls, ALaunchHasWhatWasAskedFor) {
  const dimensions grid{4, 3, 2}, block{8, 4, 2};
  const auto memory = call_for_address("GetParameterBufferV2", address_of("child"), grid, block, std::uint32_t{48});
  ASSERT_NE(memory, 0U);
  auto* const parameters = reinterpret_cast<void*>(memory);
  EXPECT_EQ(heap_.at(parameters).size, function_of("child").formals_size);
  EXPECT_TRUE(queue_.take().children.empty()) << "nothing is launched before the parameters are written";
  EXPECT_EQ(call_sized(4, "__cudaCDP2LaunchDeviceV2_ptsz", builtin::device_runtime, parameters, other_stream), success);
  const auto queued = queue_.take();
  ASSERT_EQ(queued.children.size(), 1U);
  EXPECT_TRUE(queued.tails.empty());
  const queued_work& work = queued.children[0];
  EXPECT_EQ(work.kernel, &function_of("child"));
  EXPECT_EQ(std::tuple(work.grid.x, work.grid.y, work.grid.z), std::tuple(4U, 3U, 2U));
  EXPECT_EQ(std::tuple(work.block.x, work.block.y, work.block.z), std::tuple(8U, 4U, 2U));
  EXPECT_EQ(work.dynamic_shared, 48U);
  EXPECT_EQ(work.parameters, parameters);
  EXPECT_EQ(call("LaunchDeviceV2", parameters, other_stream), invalid_value) << "a launch is queued once";
  EXPECT_EQ(call("GetLastError"), invalid_value);
  EXPECT_TRUE(queue_.take().children.empty());
}

TEST_F(DeviceCalls, LaunchesOfTheOldInterfaceCopyTheirParameters) {
  const std::size_t bytes = function_of("child").formals_size;
  const auto given = call_for_address("GetParameterBuffer", std::uint64_t{64}, std::uint64_t{bytes});
  ASSERT_NE(given, 0U);
  EXPECT_EQ(heap_.at(reinterpret_cast<void*>(given)).size, bytes);
  const auto content = values(bytes);
  std::memcpy(reinterpret_cast<void*>(given), content.data(), bytes);
  EXPECT_EQ(call("LaunchDevice", address_of("child"), given, dimensions{7, 1, 1}, dimensions{32, 1, 1},
                 std::uint32_t{16}, tail_stream),
            success);
  EXPECT_FALSE(heap_.contains(reinterpret_cast<void*>(given)));
  const auto queued = queue_.take();
  EXPECT_TRUE(queued.children.empty());
  ASSERT_EQ(queued.tails.size(), 1U);
  const queued_work& work = queued.tails[0];
  EXPECT_EQ(std::tuple(work.grid.x, work.block.x, work.dynamic_shared), std::tuple(7U, 32U, 16U));
  EXPECT_EQ(std::memcmp(work.parameters, content.data(), bytes), 0);
  EXPECT_EQ(heap_.size(), 1U);

  std::uint8_t* const none = nullptr;
  EXPECT_EQ(call("LaunchDevice", address_of("narrow"), none, dimensions{1, 1, 1}, dimensions{97, 1, 1},
                 std::uint32_t{0}, other_stream),
            invalid_configuration);
  EXPECT_EQ(call("LaunchDevice", address_of("narrow"), none, dimensions{1, 1, 1}, dimensions{96, 1, 1},
                 std::uint32_t{0}, other_stream),
            success);
  EXPECT_EQ(queue_.take().children.size(), 1U);
}

TEST_F(DeviceCalls, AParameterBufferOfZeroBytesHasAnAddress) {
  const auto given = call_for_address("GetParameterBuffer", std::uint64_t{64}, std::uint64_t{0});
  ASSERT_NE(given, 0U);
  EXPECT_EQ(heap_.at(reinterpret_cast<void*>(given)).size, 1U);
  const auto memory = call_for_address("GetParameterBufferV2", address_of("narrow"), dimensions{}, dimensions{}, 0U);
  ASSERT_NE(memory, 0U);
  EXPECT_EQ(heap_.at(reinterpret_cast<void*>(memory)).size, 1U);
}

TEST_F(DeviceCalls, LimitsOfGridsAndBlocksMayBeReachedButNotExceeded) {
  const auto result_of = [&](const std::string& kernel, dimensions grid, dimensions block, std::uint32_t shared) {
    const auto memory = call_for_address("GetParameterBufferV2", address_of(kernel), grid, block, shared);
    const auto error = call("GetLastError");
    EXPECT_EQ(memory != 0, error == success);
    return error;
  };
  constexpr std::uint32_t most_columns = 0x7fffffff;
  struct limit {
    const char* kernel;
    dimensions grid, block;
    std::uint32_t shared, expected;
  };
  const std::uint32_t room = most_shared_memory - 4096;
  for (const auto& [kernel, grid, block, shared, expected] : std::vector<limit>{
           {"child", {most_columns, 1, 1}, {1, 1, 1}, 0, success},
           {"child", {most_columns + 1, 1, 1}, {1, 1, 1}, 0, invalid_configuration},
           {"child", {1, 65535, 1}, {1, 1, 1}, 0, success},
           {"child", {1, 65536, 1}, {1, 1, 1}, 0, invalid_configuration},
           {"child", {1, 1, 65535}, {1, 1, 1}, 0, success},
           {"child", {1, 1, 65536}, {1, 1, 1}, 0, invalid_configuration},
           {"child", {0, 1, 1}, {1, 1, 1}, 0, invalid_configuration},
           {"child", {1, 1, 0}, {1, 1, 1}, 0, invalid_configuration},
           {"child", {1, 1, 1}, {0, 1, 1}, 0, invalid_configuration},
           {"child", {1, 1, 1}, {1024, 1, 1}, 0, success},
           {"child", {1, 1, 1}, {1025, 1, 1}, 0, invalid_configuration},
           {"child", {1, 1, 1}, {1, 1024, 1}, 0, success},
           {"child", {1, 1, 1}, {1, 1025, 1}, 0, invalid_configuration},
           {"child", {1, 1, 1}, {1, 1, 64}, 0, success},
           {"child", {1, 1, 1}, {1, 1, 65}, 0, invalid_configuration},
           {"child", {1, 1, 1}, {32, 33, 1}, 0, invalid_configuration},
           {"narrow", {1, 1, 1}, {48, 2, 1}, room, success},
           {"narrow", {1, 1, 1}, {97, 1, 1}, 0, invalid_configuration},
           {"narrow", {1, 1, 1}, {1, 1, 1}, room + 1, invalid_configuration},
           {"aid", {1, 1, 1}, {1, 1, 1}, 0, invalid_function},
       })
    EXPECT_EQ(result_of(kernel, grid, block, shared), expected)
        << kernel << " " << grid.x << " " << grid.y << " " << grid.z << " " << block.x << " " << block.y << " "
        << block.z << " " << shared;
  EXPECT_EQ(call_for_address("GetParameterBufferV2", std::uint64_t{12345}, dimensions{}, dimensions{}, 0U), 0U);
  EXPECT_EQ(call("GetLastError"), invalid_function);
  most_ = 0;
  EXPECT_EQ(call_for_address("GetParameterBufferV2", address_of("child"), dimensions{}, dimensions{}, 0U), 0U);
  EXPECT_EQ(call("GetLastError"), out_of_memory);
}

TEST_F(DeviceCalls, LaunchesThatWereOnlyPreparedGiveTheirParametersBack) {
  {
    device_queue queue([this](void* memory) { around_.release(memory); });
    around_.queue = &queue;
    void* const kept = reinterpret_cast<void*>(
        call_for_address("GetParameterBufferV2", address_of("child"), dimensions{}, dimensions{}, 0U));
    call_for_address("GetParameterBufferV2", address_of("child"), dimensions{}, dimensions{}, 0U);
    EXPECT_EQ(heap_.size(), 2U);
    EXPECT_EQ(call("LaunchDeviceV2", kept, other_stream), success);
  }
  EXPECT_EQ(heap_.size(), 1U) << "the queued launch keeps its parameters";
}

TEST_F(DeviceCalls, WithoutAQueueALaunchStopsTheKernel) {
  around_.queue = nullptr;
  void* const parameters = &around_;
  try {
    call("LaunchDeviceV2", parameters, other_stream);
    FAIL() << "the kernel goes on";
  } catch (const trap_exception& e) {
    EXPECT_EQ(e.trap.why, trap::reason::illegal);
    EXPECT_NE(e.trap.detail.find("cannot queue work"), std::string::npos) << e.trap.detail;
  }
}

// ---- errors

TEST_F(DeviceCalls, EachThreadOfTheGridHasItsOwnLastError) {
  void* const unknown = &around_;
  std::vector<std::tuple<dimensions, std::uint32_t>> threads;
  for (std::uint32_t z = 0; z < 5; ++z)
    for (std::uint32_t y = 0; y < 4; ++y)
      for (std::uint32_t x = 0; x < 3; ++x)
        for (std::uint32_t t = 0; t < 4; ++t) threads.emplace_back(dimensions{x, y, z}, t);
  const auto become = [&](std::size_t n) { std::tie(block_.ctaid, block_.current) = threads[n]; };
  for (std::size_t n = 0; n < threads.size(); n += 3) {
    become(n);
    EXPECT_EQ(call("LaunchDeviceV2", unknown, other_stream), invalid_value);
  }
  for (std::size_t n = 0; n < threads.size(); ++n) {
    become(n);
    EXPECT_EQ(call("PeekAtLastError"), n % 3 == 0 ? invalid_value : success) << n;
    EXPECT_EQ(call("GetLastError"), n % 3 == 0 ? invalid_value : success) << n;
    EXPECT_EQ(call("GetLastError"), success) << n;
  }
}

TEST_F(DeviceCalls, ASuccessfulCallKeepsTheLastError) {
  void* const unknown = &around_;
  int device = -1;
  EXPECT_EQ(call("LaunchDeviceV2", unknown, other_stream), invalid_value);
  EXPECT_EQ(call("GetDevice", &device), success);
  EXPECT_EQ(call("PeekAtLastError"), invalid_value);
}

TEST_F(DeviceCalls, TextsOfErrorsMayBeReadUpToTheirZero) {
  const auto text_of = [&](const char* which, std::uint32_t code) {
    return reinterpret_cast<const char*>(call_for_address(which, code));
  };
  for (const auto& [code, name, sentence] : std::vector<std::tuple<std::uint32_t, std::string, std::string>>{
           {0, "cudaSuccess", "no error"},
           {1, "cudaErrorInvalidValue", "invalid argument"},
           {2, "cudaErrorMemoryAllocation", "out of memory"},
           {9, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
           {98, "cudaErrorInvalidDeviceFunction", "invalid device function"},
           {801, "cudaErrorNotSupported", "operation not supported"},
           {12345, "unrecognized error code", "unrecognized error code"}}) {
    for (const auto& [which, expected] : {std::tuple("GetErrorName", name), std::tuple("GetErrorString", sentence)}) {
      const char* const text = text_of(which, code);
      EXPECT_EQ(text, expected) << code;
      const auto address = reinterpret_cast<std::uint64_t>(text);
      EXPECT_TRUE(is_text_of_device_runtime(address, expected.size() + 1)) << expected;
      EXPECT_TRUE(is_text_of_device_runtime(address + expected.size(), 1)) << expected;
      EXPECT_FALSE(is_text_of_device_runtime(address, expected.size() + 2)) << expected;
      EXPECT_FALSE(is_text_of_device_runtime(address + expected.size(), 2)) << expected;
    }
  }
  EXPECT_FALSE(is_text_of_device_runtime(reinterpret_cast<std::uint64_t>(&heap_), 1));
}

TEST(DeviceRuntime, KnowsItsNames) {
  for (const char* const name : {"cudaMalloc", "__cudaCDP2Malloc", "__cudaCDP2MemcpyAsync_ptsz", "cudaGetLastError",
                                 "cudaLaunchDeviceV2_ptsz"}) {
    EXPECT_TRUE(is_in_device_runtime(name)) << name;
  }
  for (const char* const name : {"Malloc", "cudaFrobnicate", "vprintf", "", "MemcpyAsync_ptsz", "cuda"})
    EXPECT_FALSE(is_in_device_runtime(name)) << name;
  EXPECT_TRUE(is_absent_from_device_runtime("cudaFrobnicate"));
  EXPECT_TRUE(is_absent_from_device_runtime("__cudaCDP2Frobnicate"));
  EXPECT_TRUE(is_absent_from_device_runtime("__cudaDeviceSynchronizeDeprecationAvoidance"));
  for (const char* const name : {"my_function", "__cudaOther", "", "vprintf"})
    EXPECT_FALSE(is_absent_from_device_runtime(name)) << name;
}

// ---- devices, handles, memory, conditions

TEST_F(DeviceCalls, TellTheDeviceAndHandles) {
  int device = -1, count = -1;
  EXPECT_EQ(call("GetDevice", &device), success);
  EXPECT_EQ(call("GetDeviceCount", &count), success);
  EXPECT_EQ(device, 2);
  EXPECT_EQ(count, 5);
  int* const nowhere = nullptr;
  EXPECT_EQ(call("GetDevice", nowhere), invalid_value);
  EXPECT_EQ(call("GetLastError"), invalid_value);
  std::vector<std::uint64_t> handles(4);
  for (std::size_t n = 0; n < handles.size(); ++n)
    EXPECT_EQ(call(n % 2 == 0 ? "StreamCreateWithFlags" : "EventCreateWithFlags", &handles[n], 1U), success);
  EXPECT_GT(*std::min_element(handles.begin(), handles.end()), 16U) << "small numbers are CUDA's own streams";
  std::sort(handles.begin(), handles.end());
  EXPECT_EQ(std::unique(handles.begin(), handles.end()), handles.end());
  for (const char* const nothing : {"EventRecord", "EventDestroy", "StreamDestroy", "StreamWaitEvent"})
    EXPECT_EQ(call(nothing, handles[0], handles[1], 0U), success) << nothing;
}

TEST_F(DeviceCalls, MemoryIsAllocatedAndReleased) {
  void* memory = nullptr;
  EXPECT_EQ(call("Malloc", &memory, std::size_t{100}), success);
  ASSERT_TRUE(heap_.contains(memory));
  EXPECT_EQ(heap_.at(memory).size, 100U);
  EXPECT_EQ(call("Free", memory), success);
  EXPECT_TRUE(heap_.empty());
  void* const nothing = nullptr;
  EXPECT_EQ(call("Free", nothing), success);
  most_ = 8;
  void* kept = &memory;
  EXPECT_EQ(call("Malloc", &kept, std::size_t{9}), out_of_memory);
  EXPECT_EQ(kept, &memory);
  EXPECT_EQ(call("GetLastError"), out_of_memory);
}

TEST_F(DeviceCalls, AConditionIsStoredWhereItsHandlePoints) {
  alignas(4) std::array<std::uint32_t, 3> words{7, 7, 7};
  std::vector<std::tuple<std::uint64_t, std::size_t>> asked;
  const auto place = reinterpret_cast<std::uint64_t>(&words[1]);
  around_.may_touch = [&](std::uint64_t address, std::size_t bytes) {
    asked.emplace_back(address, bytes);
    return address == place;
  };
  const auto set = [&](std::uint64_t handle, std::uint32_t value) {
    call_sized(0, "cudaGraphSetConditional", builtin::device_runtime, handle, value);
  };
  set(place, 3);
  EXPECT_EQ(words, (std::array<std::uint32_t, 3>{7, 3, 7}));
  EXPECT_EQ(asked, (std::vector<std::tuple<std::uint64_t, std::size_t>>{{place, sizeof(std::uint32_t)}}));
  for (const std::uint64_t wrong : {std::uint64_t{0}, place + 1, place + 4})
    EXPECT_THROW(set(wrong, 9), trap_exception);
  EXPECT_EQ(words, (std::array<std::uint32_t, 3>{7, 3, 7}));
  around_.may_touch = nullptr;  // page faults detect wrong addresses
  set(place + 4, 5);
  EXPECT_EQ(words[2], 5U);
}

// ---- printf, malloc, free, assert

TEST_F(DeviceCalls, PrintfReturnsTheNumberOfItsArguments) {
  struct {
    std::int32_t first = 41;
    double second = 1.5;
    std::int32_t third = -3;
  } arguments;
  const char* const format = "%d %.2f|%i\n";
  EXPECT_EQ(call_sized(4, "vprintf", builtin::print, format, &arguments), 3U);
  EXPECT_EQ(printed_, "41 1.50|-3\n");
  const char* const none = nullptr;
  EXPECT_EQ(call_sized(4, "vprintf", builtin::print, none, &arguments), 0xffffffffU);
  around_.print = nullptr;
  EXPECT_EQ(call_sized(4, "vprintf", builtin::print, format, &arguments), 3U);
}

TEST_F(DeviceCalls, MallocReturnsNullWithoutMemory) {
  const auto memory = call_sized(8, "malloc", builtin::allocate, std::uint64_t{24});
  ASSERT_TRUE(heap_.contains(reinterpret_cast<void*>(memory)));
  call_sized(0, "free", builtin::release, memory);
  EXPECT_TRUE(heap_.empty());
  call_sized(0, "free", builtin::release, std::uint64_t{0});
  around_.allocate = nullptr;
  EXPECT_EQ(call_sized(8, "malloc", builtin::allocate, std::uint64_t{24}), 0U);
  around_.release = nullptr;
  call_sized(0, "free", builtin::release, std::uint64_t{64});
}

TEST_F(DeviceCalls, AFailedAssertionNamesItsPlaceBlockAndThread) {
  block_.ctaid = {1, 2, 3};
  block_.current = 2;
  const char *const what = "a < b", *const file = "k.cu", *const where = "void k()";
  try {
    call_sized(0, "__assertfail", builtin::assertion, what, file, std::uint32_t{17}, where, std::uint64_t{1});
    FAIL() << "the kernel goes on";
  } catch (const trap_exception& e) {
    EXPECT_EQ(e.trap.why, trap::reason::assertion);
    EXPECT_EQ(e.trap.detail, "k.cu:17: void k(): block: [1,2,3], thread: [2,6,10] Assertion `a < b` failed.");
  }
}

// Packs arguments as the CUDA compiler does.
class packed {
 public:
  template <class T>
  packed& operator<<(T value) {
    size_ = (size_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    std::memcpy(bytes_.data() + size_, &value, sizeof(T));
    size_ += sizeof(T);
    return *this;
  }
  [[nodiscard]] const void* data() const { return bytes_.data(); }

 private:
  std::array<std::uint8_t, 256> bytes_{};
  std::size_t size_ = 0;
};

TEST(Printf, FormatsLikeC) {
  const auto expect = [](const char* format, const packed& arguments, const std::string& text, std::uint32_t count) {
    const auto [got, taken] = format_message(format, arguments.data());
    EXPECT_EQ(got, text) << format;
    EXPECT_EQ(taken, count) << format;
  };
  expect("", {}, "", 0);
  expect("100%%|", {}, "100%|", 0);
  expect("%-5d|%+d|% d|%05d|%#x|%X", packed() << 1 << 2 << 3 << 4 << 255 << 255, "1    |+2| 3|00004|0xff|FF", 6);
  expect("%*d|%-*d|%.*f", packed() << 5 << 7 << 3 << 8 << 1 << 2.25, "    7|8  |2.2", 6);
  expect("%hhd|%hd|%ld|%lld|%zu|%jd|%td", packed() << 300 << 65537 << -1L << 1LL << 2UL << 3L << 4L, "44|1|-1|1|2|3|4",
         7);
  expect("%c%c", packed() << int{'x'} << int{'y'}, "xy", 2);
  expect("%e|%G|%a|%F|%E|%g|%A", packed() << 1.0 << 2.0 << 1.0 << 3.0 << 4.0 << 0.5 << 2.0,
         "1.000000e+00|2|0x1p+0|3.000000|4.000000E+00|0.5|0X1P+1", 7);
  expect("%s|%s", packed() << "text" << static_cast<const char*>(nullptr), "text|(null)", 2);
  expect("%p", packed() << reinterpret_cast<void*>(0x10), "0x10", 1);
  expect("%o|%u|%lx|%lX|%lo|%lu|%li", packed() << 8 << -1 << 255L << 255L << 8L << -1L << -2L,
         "10|4294967295|ff|FF|10|18446744073709551615|-2", 7);
  expect("%d%", packed() << 1, "1%", 1);
  expect("%y|%d", packed() << 6, "%y|6", 1);
  expect("%-08.3", {}, "%-08.3", 0);
}

TEST(Printf, ResultsOfAnyLengthAreComplete) {
  for (const int width : {1, 62, 63, 64, 65, 127, 1000}) {
    const auto [text, taken] = format_message("<%*d>", (packed() << width << 7).data());
    EXPECT_EQ(text, "<" + std::string(static_cast<std::size_t>(width) - 1, ' ') + "7>");
    EXPECT_EQ(taken, 2U);
    const std::string word(static_cast<std::size_t>(width), 'w');
    EXPECT_EQ(format_message("%s", (packed() << word.c_str()).data()).text, word);
  }
}

// ---- the order of descendants

queued_work named(std::uint32_t name) {
  queued_work work;
  work.dynamic_shared = name;
  return work;
}

device_queue::content content_of(std::vector<std::uint32_t> children, std::vector<std::uint32_t> tails) {
  device_queue queue([](void*) {});
  for (const std::uint32_t name : tails) queue.add(named(name), true);
  for (const std::uint32_t name : children) queue.add(named(name), false);
  return queue.take();
}

TEST(Descendants, RunBeforeWhatTheirParentQueuedLaterAndTailsRunLast) {
  const std::map<std::uint32_t, std::pair<std::vector<std::uint32_t>, std::vector<std::uint32_t>>> tree{
      {0, {{1, 2}, {3, 4}}}, {1, {{11, 12}, {13}}}, {2, {{}, {21}}}, {3, {{31}, {}}}, {11, {{}, {111}}}};
  descendants all;
  const auto enter = [&](std::uint32_t name) {
    const auto found = tree.find(name);
    if (found == tree.end()) return all.enter({});
    all.enter(content_of(found->second.first, found->second.second));
  };
  std::vector<std::uint32_t> order;
  enter(0);
  while (const auto work = all.next()) {
    order.push_back(work->dynamic_shared);
    enter(work->dynamic_shared);
  }
  EXPECT_EQ(order, (std::vector<std::uint32_t>{1, 11, 111, 12, 13, 2, 21, 3, 31, 4}));
  EXPECT_FALSE(all.next());
}

TEST(Descendants, TheQueueIsEmptyAfterItsContentWasTaken) {
  device_queue queue([](void*) {});
  queue.add(named(1), false);
  EXPECT_EQ(queue.take().children.size(), 1U);
  EXPECT_TRUE(queue.take().children.empty());
  EXPECT_FALSE(queue.take_prepared(&queue));
}

}  // namespace
}  // namespace hpe::ptx::test
