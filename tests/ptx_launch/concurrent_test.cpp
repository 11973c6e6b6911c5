// Tests launches whose order the program itself ensures (hpeLaunchGridAfter). These launches may overlap, and hpe
// orders all other work before or after them.

#include <sys/utsname.h>

#include <atomic>
#include <thread>

#include "tests/ptx_launch/support.h"

namespace {

using namespace ptx_launch;
using numbers = hpe::array<std::uint32_t>;

class Concurrent : public random_numbers {};

// A kernel spins until another kernel writes a flag. If hpe ordered the two kernels, neither would end.
TEST_F(Concurrent, LaunchesRunAtOnce) {
  const module m;
  for (int device = 0; device < device_count(); ++device) {
    numbers stop(1), result(1);
    stop[0] = 0;  // uploaded before the kernel begins
    const hpeWork waiting = m.launch_after({}, 0, "spin", blocks_of(1, 1), stop.data(), result.data());
    int done = 1;
    EXPECT_TRUE(works(hpeWorkQuery(waiting, &done)));
    EXPECT_EQ(done, 0);
    m.launch_after({}, device, "add_number", blocks_of(1, 1), stop.data(), 1U, 6U);
    EXPECT_TRUE(works(hpeWorkWait(waiting, nullptr)));
    EXPECT_EQ(result[0], 6U);
    EXPECT_EQ(stop[0], 6U);
  }
}

TEST_F(Concurrent, LaunchesRunAfterWhatTheyName) {
  const module m;
  const int last = device_count() - 1;
  hpe::array<std::uint32_t> stop(1, hpe::placement::on_host());
  numbers value(1), result(1);
  for (int round = 0; round < 20; ++round) {
    hpeWork work = m.launch_after({hpeWork{}}, 0, "spin", blocks_of(1, 1), stop.data(), value.data());
    work = m.launch_after({work, hpeWork{}}, last, "add_number", blocks_of(1, 1), value.data(), 1U, 1U);
    const hpeWork other = m.launch_after({}, last, "add_number", blocks_of(1, 1), result.data(), 1U, 1U);
    work = m.launch_after({other, work}, 0, "add_number", blocks_of(1, 1), value.data(), 1U, 1U);
    std::atomic_ref(stop[0]).store(5);
    EXPECT_EQ(value[0], 7U) << round;  // the host waits for all launches
    std::atomic_ref(stop[0]).store(0);
  }
  EXPECT_EQ(result[0], 20U);
}

// Ordered work on the memory waits for the launches, and so does freeing the memory.
TEST_F(Concurrent, LaunchesKeepHostMemoryAlive) {
  const module m;
  constexpr std::uint32_t n = 100000;
  for (int round = 0; round < 5; ++round) {
    hpe::array<std::uint32_t> host(n, hpe::placement::on_host());
    std::vector<std::uint32_t> ordinary(n);
    hpeWork work{};
    for (int i = 0; i < 10; ++i)
      work = m.launch_after({work}, 0, "add_number", blocks_of(n / 100, 100), host.data(), n, 1U);
    if (round % 2 == 0) {
      ASSERT_TRUE(works(hpeMemcpy(ordinary.data(), host.data(), n * 4)));
      for (const std::uint32_t v : ordinary) ASSERT_EQ(v, 10U);
    } else {
      m.launch(device_count() - 1, "add_number", blocks_of(n / 100, 100), host.data(), n, 1U);
      for (const std::uint32_t v : host) ASSERT_EQ(v, 11U);
    }
    m.launch_after({}, 0, "add_number", blocks_of(n / 100, 100), host.data(), n, 1U);
  }
  EXPECT_TRUE(works(hpeSynchronize()));
}

TEST_F(Concurrent, LaunchesAreInOrderWithEverythingElse) {
  const module m;
  constexpr std::uint32_t n = 60001;
  const hpeGrid shape = blocks_of((n + 255) / 256, 256);
  const int last = device_count() - 1;
  numbers values(n), copy(n);
  std::vector<std::uint32_t> ordinary(n);
  std::uint32_t expected = 0;
  for (int round = 0; round < 10; ++round) {
    for (std::uint32_t i = 0; i < n; ++i) values[i] = expected = random() % 1000 + 1;
    for (std::uint32_t& v : values) v = expected;
    m.launch_after({}, 0, "add_number", shape, values.data(), n, 1U);    // after the host's writes
    m.launch(last, "add_number", shape, values.data(), n, 1U);           // after a concurrent launch
    m.launch_after({}, 0, "add_number", shape, values.data(), n, 1U);    // after an ordered launch
    ASSERT_TRUE(works(hpeMemcpy(copy.data(), values.data(), n * 4)));    // a copy between devices
    m.launch_after({}, last, "add_number", shape, copy.data(), n, 1U);   // after the copy
    ASSERT_TRUE(works(hpeMemcpy(ordinary.data(), copy.data(), n * 4)));  // a copy to ordinary memory
    m.launch_after({}, 0, "add_number", shape, values.data(), n, 1U);
    ASSERT_TRUE(works(hpeMemcpy(values.data(), ordinary.data(), 4)));  // a copy from ordinary memory
    for (std::uint32_t i = 0; i < n; ++i) ASSERT_EQ(ordinary[i], expected + 4);
    for (std::uint32_t i = 0; i < n; ++i) ASSERT_EQ(values[i], expected + 4) << i;
    m.launch_after({}, last, "add_number", shape, copy.data(), n, 1U);
    ASSERT_TRUE(works(hpeMemset(copy.data(), 0, n * 4)));
    m.launch_after({}, 0, "add_number", shape, copy.data(), n, 2U);
    for (const std::uint32_t v : copy) ASSERT_EQ(v, 2U);
  }
}

// Each thread orders its own launches, like a stream of a CUDA program. The host's accesses and the copies of other
// threads run between these launches.
TEST_F(Concurrent, StreamsKeepTheirData) {
  const module m;
  constexpr std::uint32_t n = 3001, rounds = 60, threads = 5;
  std::atomic<int> wrong{0};
  std::vector<std::thread> running;
  for (std::uint32_t t = 0; t < threads; ++t)
    running.emplace_back([&, chance = std::mt19937(seed + t)]() mutable {
      numbers mine(n), other(n);
      std::uint32_t in_mine = 0, in_other = 0;
      hpeWork last{};
      for (std::uint32_t i = 0; i < rounds; ++i) {
        const int device = static_cast<int>(chance() % static_cast<unsigned>(device_count()));
        const std::uint32_t number = chance() % 100;
        switch (chance() % 6) {
          case 0:
            for (std::uint32_t& v : mine) v = number;
            in_mine = number;
            break;
          case 1:
            for (const std::uint32_t v : mine) wrong += v != in_mine ? 1 : 0;
            break;
          case 2:
            if (hpeMemcpy(other.data(), mine.data(), n * 4) != HPE_SUCCESS) ++wrong;
            in_other = in_mine;
            break;
          case 3:
            last = m.launch_after({last}, device, "add_number", blocks_of(32, 96), other.data(), n, number);
            in_other += number;
            break;
          default:
            last = m.launch_after({last}, device, "add_number", blocks_of(32, 96), mine.data(), n, number);
            in_mine += number;
            break;
        }
      }
      for (const std::uint32_t v : mine) wrong += v != in_mine ? 1 : 0;
      for (const std::uint32_t v : other) wrong += v != in_other ? 1 : 0;
    });
  for (std::thread& t : running) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(works(hpeSynchronize()));
}

TEST_F(Concurrent, LaunchesFailAndAreRefusedAsOthers) {
  const module m;
  numbers values(10);
  const hpeWork failed = m.launch_after({}, 0, "write_at", blocks_of(1, 1), std::uintptr_t{8}, 0U, 0U);
  const hpeWork next = m.launch_after({failed}, 0, "add_number", blocks_of(1, 10), values.data(), 10U, 1U);
  EXPECT_TRUE(works(hpeWorkWait(next, nullptr)));
  EXPECT_TRUE(fails(hpeWorkWait(failed, nullptr), HPE_ERROR_LAUNCH_FAILED, {"write_at"}));
  EXPECT_EQ(values[9], 1U);
  const hpeGrid shape = blocks_of(1, 1);
  EXPECT_TRUE(fails(hpeLaunchGridAfter(0, m.kernel("add_number"), &shape, values.data(), 16, nullptr, 1, nullptr),
                    HPE_ERROR_INVALID_ARGUMENT));
}

// hpe does not intercept this system call, so the call fails with EFAULT if the pages are closed.
bool system_writes(void* p) { return ::uname(static_cast<utsname*>(p)) == 0; }

TEST_F(Concurrent, OpenMemoryIsOpenFromTheStartAndWhileKernelsRun) {
  const module m;
  for (const std::size_t bytes :
       {std::size_t{4096}, std::size_t{256} << 10, (std::size_t{256} << 10) + 1, std::size_t{5} << 20}) {
    void *opened = nullptr, *closed = nullptr;
    ASSERT_TRUE(works(hpeMallocOpen(&opened, bytes)));
    ASSERT_TRUE(works(hpeMallocHost(&closed, bytes)));
    hpePointerInfo about{};
    about.struct_size = sizeof about;
    ASSERT_TRUE(works(hpeGetPointerInfo(opened, &about)));
    EXPECT_EQ(about.kind, HPE_MEMORY_HOST);
    EXPECT_EQ(about.size, bytes);
    auto* const last_page = static_cast<char*>(opened) + bytes - 400;
    EXPECT_TRUE(system_writes(opened) && system_writes(last_page)) << bytes;
    EXPECT_FALSE(system_writes(closed)) << bytes;
    auto* const stop = static_cast<std::uint32_t*>(opened);
    stop[0] = 0;
    numbers result(1);
    // An ordered launch: if the host waited for the kernel before writing the flag, neither would end.
    const hpeWork ordered = m.launch(0, "spin", blocks_of(1, 1), stop, result.data());
    std::atomic_ref(stop[0]).store(5);
    EXPECT_TRUE(works(hpeWorkWait(ordered, nullptr)));
    EXPECT_EQ(result[0], 5U);
    EXPECT_TRUE(system_writes(opened) && system_writes(last_page)) << bytes;
    // Calls that hpe intercepts wait for the kernels.
    stop[0] = 1;
    for (int i = 0; i < 10; ++i) m.launch(device_count() - 1, "add_number", blocks_of(1, 1), stop, 1U, 1U);
    std::uint32_t read = 0;
    EXPECT_TRUE(works(hpeMemcpy(&read, opened, sizeof read)));
    EXPECT_EQ(read, 11U);
    EXPECT_TRUE(works(hpeFree(opened)));
    EXPECT_TRUE(works(hpeFree(closed)));
  }
}

}  // namespace
