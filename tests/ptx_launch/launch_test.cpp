// Kernels from PTX on soft devices, through <hpe/ptx.h>: their data, shapes, variables and order.

#include <array>
#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>

#include "tests/ptx_launch/support.h"

namespace {

using namespace ptx_launch;
using floats = hpe::array<float>;
using numbers = hpe::array<std::uint32_t>;

class Launches : public random_numbers {};

// For odd sizes, including a single element, the host writes the data, a kernel runs, and the host reads the result.
TEST_F(Launches, AddVectorsOnEachDevice) {
  const module m;
  for (int device = 0; device < device_count(); ++device) {
    for (const std::uint32_t n : {1U, 255U, 257U, 100003U, 1000000U}) {
      floats a(n, hpe::placement::on_device(device)), b(n, hpe::placement::on_device(device)),
          c(n, hpe::placement::on_device(device));
      for (std::uint32_t i = 0; i < n; ++i) {
        a[i] = static_cast<float>(random() % 1000);
        b[i] = static_cast<float>(random() % 1000);
        c[i] = -1;
      }
      m.launch_on({hpe::in(a), hpe::in(b), hpe::inout(c)}, device, "vector_add", blocks_of((n + 255) / 256, 256),
                  c.data(), a.data(), b.data(), n);
      for (std::uint32_t i = 0; i < n; ++i) ASSERT_EQ(c[i], a[i] + b[i]) << i << " of " << n << " on " << device;
    }
  }
  EXPECT_TRUE(works(hpeSynchronize()));
}

// Devices and the host add to the same numbers in turn, and each sees the earlier results.
TEST_F(Launches, SeeWhatTheHostAndPeersWrote) {
  const module m;
  constexpr std::uint32_t n = 70001;
  numbers values(n);
  std::uint32_t expected = random() % 100;
  for (std::uint32_t i = 0; i < n; ++i) values[i] = expected + i;
  for (int round = 0; round < 4; ++round) {
    for (int device = 0; device < device_count(); ++device) {
      m.launch(device, "add_number", blocks_of((n + 127) / 128, 128), values.data(), n, 3U);
      m.launch_on({hpe::inout(values)}, device, "add_number", blocks_of((n + 127) / 128, 128), values.data(), n, 4U);
      expected += 7;
    }
    values[round] += 1;  // the host waits for the devices, and the devices for the host
    for (std::uint32_t i = 0; i < n; ++i)
      ASSERT_EQ(values[i], expected + i + (static_cast<int>(i) <= round ? 1 : 0)) << i << " in round " << round;
  }
}

TEST_F(Launches, ReachHostAndStripedMemory) {
  const module m;
  constexpr std::uint32_t n = 3000017;
  numbers host(n, hpe::placement::on_host()), striped(n, hpe::placement::striped(HPE_DISTRIBUTE_BLOCK));
  for (std::uint32_t i = 0; i < n; ++i) host[i] = striped[i] = i;
  const int last = device_count() - 1;
  m.launch(last, "add_number", blocks_of((n + 255) / 256, 256), host.data(), n, 5U);
  m.launch(last, "add_number", blocks_of((n + 255) / 256, 256), striped.data(), n, 6U);
  for (std::uint32_t i = 0; i < n; ++i) {
    ASSERT_EQ(host[i], i + 5);
    ASSERT_EQ(striped[i], i + 6);
  }
}

TEST_F(Launches, HaveSharedMemoryAndBarriers) {
  const module m;
  constexpr std::uint32_t blocks = 7, threads = 96;
  numbers values(blocks * threads);
  for (std::uint32_t& v : values) v = random();
  const std::vector<std::uint32_t> before(values.begin(), values.end());
  m.launch(0, "reverse_blocks", blocks_of(blocks, threads, threads * 4), values.data());
  for (std::uint32_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(values[i], before[i / threads * threads + threads - 1 - i % threads]) << i;
}

TEST_F(Launches, HaveThreeDimensions) {
  const module m;
  struct triple {
    std::uint32_t x, y, z;
  };
  const hpeGrid shape{{3, 4, 5}, {7, 2, 3}, 0, 0, {}};
  constexpr std::size_t count = 3 * 4 * 5 * 7 * 2 * 3;
  hpe::array<triple> blocks(count), threads(count);
  m.launch(0, "write_indices", shape, blocks.data(), threads.data());
  std::size_t at = 0;
  for (std::uint32_t block = 0; block < 60; ++block)
    for (std::uint32_t thread = 0; thread < 42; ++thread, ++at) {
      ASSERT_EQ(blocks[at].x, block % 3);
      ASSERT_EQ(blocks[at].y, block / 3 % 4);
      ASSERT_EQ(blocks[at].z, block / 12);
      ASSERT_EQ(threads[at].x, thread % 7);
      ASSERT_EQ(threads[at].y, thread / 7 % 2);
      ASSERT_EQ(threads[at].z, thread / 14);
    }
}

TEST_F(Launches, MeetAcrossTheGrid) {
  const module m;
  constexpr std::uint32_t blocks = 9, threads = 64;
  numbers values(blocks * threads), totals(blocks * threads);
  std::uint32_t sum = 0;
  for (std::uint32_t& v : values) sum += v = random();
  hpeGrid shape = blocks_of(blocks, threads);
  shape.cooperative = 1;
  EXPECT_TRUE(works(hpeWorkWait(m.launch(0, "sum_together", shape, values.data(), totals.data()), nullptr)));
  for (const std::uint32_t t : totals) ASSERT_EQ(t, sum);
}

TEST_F(Launches, TakeManyParameters) {
  const module m;
  struct many {
    std::uint32_t values[1020];
  } all{};
  std::uint32_t sum = 0;
  for (std::uint32_t& v : all.values) sum += v = random();
  numbers result(1);
  m.launch(0, "sum_parameters", blocks_of(1, 1), all, result.data());
  EXPECT_EQ(result[0], sum);
}

TEST_F(Launches, UseTheHeapOfTheDevice) {
  const module m;
  constexpr std::uint32_t count = 500, n = 100;
  hpe::array<std::uint32_t*> lists(count);
  numbers sums(count);
  for (int round = 0; round < 60; ++round) {  // unless lists are freed, this needs more memory than the device has
    m.launch(0, "build_list", blocks_of(count / 50, 50), lists.data(), n);
    m.launch(0, "sum_list", blocks_of(count / 50, 50), lists.data(), n, sums.data());
  }
  for (std::uint32_t i = 0; i < count; ++i) ASSERT_EQ(sums[i], i * n * n + n * (n - 1) / 2) << i;
  m.launch(0, "build_list", blocks_of(1, 2), lists.data(), 9U << 20);
  EXPECT_EQ(lists[0], nullptr) << "the list is larger than the heap";
}

TEST_F(Launches, KeepTheVariablesOfTheirModule) {
  const module one, other;
  numbers result(3);
  for (int device = 0; device < device_count(); ++device) {
    for (std::uint32_t turn = 0; turn < 3; ++turn) {
      one.launch(device, "use_variables", blocks_of(1, 1), result.data());
      EXPECT_EQ(result[0], 40 + turn) << device;
      EXPECT_EQ(result[1], 30U);
      EXPECT_EQ(result[2], 42U);
    }
    // The host reads and writes variables like any memory, also if the launch names its accesses.
    auto* const counter = one.variable<std::uint32_t>("counter", device);
    auto* const factors = one.variable<std::uint32_t>("factors", device);
    EXPECT_EQ(*counter, 43U);
    *counter = 7;
    factors[2] = 11;
    one.launch_on({hpe::inout(result)}, device, "use_variables", blocks_of(1, 1), result.data());
    EXPECT_EQ(result[0], 7U);
    EXPECT_EQ(result[1], 66U);
    EXPECT_EQ(*counter, 8U);
    other.launch(device, "use_variables", blocks_of(1, 1), result.data());
    EXPECT_EQ(result[0], 40U) << "of another module";
    EXPECT_EQ(result[1], 30U);
  }
  void* address = nullptr;
  EXPECT_TRUE(
      fails(hpeModuleGetVariable(&address, nullptr, one.handle(), "nobody", 0), HPE_ERROR_NOT_FOUND, {"nobody"}));
  EXPECT_TRUE(fails(hpeModuleGetVariable(&address, nullptr, one.handle(), "counter", 99), HPE_ERROR_INVALID_DEVICE));
}

TEST_F(Launches, RunForPlainLaunchesToo) {
  const module m;
  numbers values(1000);
  struct {
    std::uint32_t* values;
    std::uint32_t n, number;
  } const arguments{values.data(), 1000, 9};
  const hpeShape shape{{10, 0, 0}, {100, 0, 0}};
  EXPECT_TRUE(works(hpeLaunch(0, m.kernel("add_number"), &shape, &arguments, sizeof arguments, nullptr, HPE_ALL)));
  for (const std::uint32_t v : values) ASSERT_EQ(v, 9U);
}

TEST_F(Launches, ComeFromManyThreads) {
  const module m;
  constexpr std::uint32_t n = 1111, rounds = 50, threads = 6;
  std::vector<std::thread> running;
  std::atomic<int> wrong{0};
  for (std::uint32_t t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      const int device = static_cast<int>(t) % device_count();
      numbers mine(n);
      for (std::uint32_t i = 0; i < rounds; ++i) {
        const hpeWork work =
            i % 2 == 0 ? m.launch(device, "add_number", blocks_of(12, 96), mine.data(), n, t)
                       : m.launch_on({hpe::inout(mine)}, device, "add_number", blocks_of(12, 96), mine.data(), n, t);
        if (i % 7 == 0 && hpeWorkWait(work, nullptr) != HPE_SUCCESS) ++wrong;
      }
      for (const std::uint32_t v : mine)
        if (v != rounds * t) ++wrong;
    });
  for (std::thread& t : running) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Launches, AreWaitedForAndAskedAfter) {
  const module m;
  hpe::array<std::uint32_t> stop(1, hpe::placement::on_host());
  numbers result(1);
  const hpeWork work = m.launch_on({hpe::out(result)}, 0, "spin", blocks_of(1, 1), stop.data(), result.data());
  int done = 1;
  EXPECT_TRUE(works(hpeWorkQuery(work, &done)));
  EXPECT_EQ(done, 0);
  stop[0] = 5;
  EXPECT_TRUE(works(hpeWorkWait(work, nullptr)));
  EXPECT_TRUE(works(hpeWorkQuery(work, &done)));
  EXPECT_EQ(done, 1);
  EXPECT_EQ(result[0], 5U);
  EXPECT_TRUE(works(hpeWorkWait({}, nullptr)));
  EXPECT_TRUE(works(hpeWorkQuery({}, &done)));
  EXPECT_EQ(done, 1);
}

TEST_F(Launches, DescribeTheirKernels) {
  const module m;
  hpeKernelInfo info{};
  ASSERT_TRUE(works(hpeKernelGetInfo(m.kernel("vector_add"), &info)));
  EXPECT_EQ(info.parameter_count, 4U);
  EXPECT_EQ(info.parameter_bytes, 28U);
  EXPECT_EQ(info.parameter_offsets[3], 24U);
  EXPECT_EQ(info.parameter_sizes[3], 4U);
  EXPECT_EQ(info.shared_bytes, 0U);
  EXPECT_EQ(info.max_threads, 1024U);
  EXPECT_EQ(info.architecture, 75);
  EXPECT_EQ(info.constant_bytes, 12U);
  ASSERT_TRUE(works(hpeKernelGetInfo(m.kernel("reverse_blocks"), &info)));
  EXPECT_EQ(info.shared_bytes, 4U);
  ASSERT_TRUE(works(hpeKernelGetInfo(m.kernel("bounded"), &info)));
  EXPECT_EQ(info.max_threads, 64U);
  ASSERT_TRUE(works(hpeKernelGetInfo(m.kernel("sum_parameters"), &info)));
  EXPECT_EQ(info.parameter_bytes, 4088U);
}

TEST_F(Launches, TakeAsManyParametersAsCudaAllows) {
  const auto text_with = [](std::size_t numbers_of_4_bytes, std::size_t more) {
    return ".version 8.1\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 out, .param .align 4 .b8 "
           "many[" +
           std::to_string(4 * numbers_of_4_bytes + more) +
           "]) {\n.reg .b32 %r<3>;\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [out];\nld.param.u32 %r1, [many];\n"
           "ld.param.u32 %r2, [many+" +
           std::to_string(4 * (numbers_of_4_bytes - 1)) +
           "];\nst.global.u32 [%rd1], %r1;\nst.global.u32 [%rd1+4], %r2;\nret;\n}\n";
  };
  std::array<std::uint32_t, (32764 - 8) / 4> many{};
  const module m({text_with(many.size(), 0)});
  for (int device = 0; device < device_count(); ++device) {
    numbers out(2);
    // More launches than fit into a stream's queue, each with other parameters.
    for (std::uint32_t n = 1; n <= 300; ++n) {
      many.front() = n;
      many.back() = 7 * n;
      m.launch(device, "k", blocks_of(1, 1), out.data(), many);
    }
    EXPECT_EQ(out[0], 300U);
    EXPECT_EQ(out[1], 2100U);
  }
  const std::string too_many = text_with(many.size(), 1);
  const char* const text = too_many.c_str();
  hpeModule none = nullptr;
  EXPECT_TRUE(fails(hpeModuleLoadPtx(&none, &text, 1), HPE_ERROR_INVALID_ARGUMENT, {"kernel k", "32765", "32764"}));
}

TEST_F(Launches, RefuseShapesThatCannotBe) {
  const module m;
  numbers values(64);
  std::uint32_t* const p = values.data();
  const auto refused = [&](const std::string& kernel, const hpeGrid& shape, std::initializer_list<std::string> words) {
    hpeWork work{};
    EXPECT_TRUE(fails(m.try_launch(&work, 0, kernel, shape, p), HPE_ERROR_INVALID_ARGUMENT, words));
  };
  refused("bounded", blocks_of(1, 65), {"bounded", "65", "64"});
  refused("bounded", blocks_of(0, 64), {"0 blocks"});
  refused("bounded", blocks_of(1, 0), {"0 threads"});
  refused("reverse_blocks", blocks_of(1, 1025), {"1025", "1024"});
  refused("reverse_blocks", {{1, 65536, 1}, {1, 1, 1}, 0, 0, {}}, {"65536", "65535"});
  refused("reverse_blocks", {{1, 1, 1}, {1, 1, 65}, 0, 0, {}}, {"65", "64"});
  refused("reverse_blocks", {{1, 1, 1}, {32, 33, 1}, 0, 0, {}}, {"1056"});
  refused("reverse_blocks", blocks_of(1, 64, 227 << 10), {"shared", "232448"});
  const hpeGrid one = blocks_of(1, 1);
  hpeKernel kernel = m.kernel("bounded");
  EXPECT_TRUE(fails(hpeLaunchGrid(0, kernel, &one, &p, 4, nullptr, HPE_ALL, nullptr), HPE_ERROR_INVALID_ARGUMENT,
                    {"4 bytes of parameters", "8"}));
  EXPECT_TRUE(fails(hpeLaunchGrid(0, kernel, nullptr, &p, 8, nullptr, HPE_ALL, nullptr), HPE_ERROR_INVALID_ARGUMENT));
  EXPECT_TRUE(fails(hpeLaunchGrid(0, nullptr, &one, &p, 8, nullptr, HPE_ALL, nullptr), HPE_ERROR_INVALID_ARGUMENT));
  EXPECT_TRUE(fails(hpeLaunchGrid(0, kernel, &one, nullptr, 8, nullptr, HPE_ALL, nullptr), HPE_ERROR_INVALID_ARGUMENT));
  EXPECT_TRUE(fails(hpeLaunchGrid(0, kernel, &one, &p, 8, nullptr, 1, nullptr), HPE_ERROR_INVALID_ARGUMENT));
  EXPECT_TRUE(fails(hpeLaunchGrid(77, kernel, &one, &p, 8, nullptr, HPE_ALL, nullptr), HPE_ERROR_INVALID_DEVICE));
  EXPECT_TRUE(works(hpeSynchronize()));
}

TEST_F(Launches, AreOrderedWithThousandsOfAllocations) {
  const module m;
  std::vector<hpe::array<std::uint8_t>> many;
  constexpr std::size_t size = std::size_t{300} << 10;
  for (int i = 0; i < 1000; ++i) many.emplace_back(size);
  numbers values(100);
  const auto begin = std::chrono::steady_clock::now();
  constexpr std::uint32_t rounds = 20;
  for (std::uint32_t i = 0; i < rounds; ++i) {
    many[i * 31][i] = static_cast<std::uint8_t>(i);
    m.launch(static_cast<int>(i) % device_count(), "add_number", blocks_of(1, 100), values.data(), 100U, 1U);
  }
  for (const std::uint32_t v : values) ASSERT_EQ(v, rounds);
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
  RecordProperty("milliseconds_per_launch", std::to_string(time.count() / rounds));
}

}  // namespace
