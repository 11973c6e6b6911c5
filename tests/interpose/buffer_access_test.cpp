// Host code that does not know hpe uses ranges of hpe memory, while kernels and other host code use the neighbouring
// bytes.

#include "interpose/buffer_access.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "hpe/hpe.hpp"
#include "tests/core/kernels.h"

namespace {

using hpe::inout;
using hpe::out;
using hpe::interpose::buffer_access;
using hpe::interpose::host_use;
using word = std::uint32_t;

constexpr std::size_t mebi = std::size_t{1} << 20;

word* words(const buffer_access& a) { return static_cast<word*>(a.data()); }

void run_fill(const hpe::array<word>& a, word first) {
  hpe::launch(test_kernel().fill, hpe::grid(test_tiles), {a.data(), a.size(), first}, out(a));
}

// The kinds of memory with which the tests run.
enum class place { device, striped, host, small };

hpe::array<word> make(place where, std::size_t n) {
  switch (where) {
    case place::striped: return hpe::array<word>(n, hpe::cyclic_distribution());
    case place::host: return hpe::array<word>(n, hpe::on_host());
    default: return hpe::array<word>(n);
  }
}

class memory : public testing::TestWithParam<place> {
 protected:
  [[nodiscard]] std::size_t count() const { return GetParam() == place::small ? 1000 : 2 * mebi + 77; }
};

TEST_P(memory, AReadSeesAKernelsOutput) {
  const auto a = make(GetParam(), count());
  for (word round = 1; round < 4; ++round) {
    run_fill(a, round);
    const std::size_t from = 13 * round;
    const std::size_t n = count() - 20 * round;
    const buffer_access use(a.data() + from, n * sizeof(word), host_use::read);
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(words(use)[i], round + from + i);
  }
}

TEST_P(memory, AReadSeesTheHostsOutput) {
  const auto a = make(GetParam(), count());
  for (std::size_t i = 0; i < count(); ++i) a[i] = static_cast<word>(3 * i);
  const buffer_access use(a.data() + 5, (count() - 5) * sizeof(word), host_use::read);
  for (std::size_t i = 0; i < count() - 5; ++i) ASSERT_EQ(words(use)[i], 3 * (i + 5));
}

TEST_P(memory, HalfOfItWrittenByTheHostAndHalfByAKernel) {
  const auto a = make(GetParam(), count());
  run_fill(a, 7);
  for (std::size_t i = 0; i < count() / 2; ++i) a[i] = 1;
  const buffer_access use(a.data(), count() * sizeof(word), host_use::read);
  for (std::size_t i = 0; i < count(); ++i) ASSERT_EQ(words(use)[i], i < count() / 2 ? 1 : 7 + i) << i;
}

TEST_P(memory, KernelsAndHostSeeWrittenBytes) {
  const auto a = make(GetParam(), count());
  for (int round = 0; round < 4; ++round) {
    run_fill(a, 100);
    if (round % 2 != 0) a[count() / 2] = 0;  // one block then has the state `host`
    const std::size_t from = 17;
    const std::size_t n = count() - 40;
    buffer_access use(a.data() + from, n * sizeof(word), host_use::write);
    for (std::size_t i = 0; i < n; ++i) words(use)[i] = static_cast<word>(i * 5);
    use.written();
    hpe::launch(test_kernel().increment, hpe::grid(test_tiles), {a.data(), count(), 1, 0}, inout(a));
    for (std::size_t i = 0; i < count(); ++i)
      ASSERT_EQ(a[i], i < from || i >= from + n ? 101 + i : (i - from) * 5 + 1) << i;
  }
}

TEST_P(memory, OnlyWrittenBytesChange) {
  const auto a = make(GetParam(), count());
  run_fill(a, 0);
  buffer_access use(a.data(), count() * sizeof(word), host_use::write);
  if (GetParam() == place::host) return;  // host memory is used in place
  std::memset(use.data(), 0xee, count() * sizeof(word));
  use.written(10 * sizeof(word), 3 * sizeof(word) + 1);
  for (std::size_t i = 0; i < count(); ++i) {
    word expected = static_cast<word>(i);
    if (i >= 10 && i < 13) expected = 0xeeeeeeee;
    if (i == 13) expected = (13 & 0xffffff00) | 0xee;
    ASSERT_EQ(a[i], expected) << i;
  }
}

TEST_P(memory, ReadAndWritten) {
  const auto a = make(GetParam(), count());
  run_fill(a, 0);
  buffer_access use(a.data() + 1, (count() - 1) * sizeof(word), host_use::read_write);
  for (std::size_t i = 0; i < count() - 1; ++i) words(use)[i] *= 2;
  use.written();
  for (std::size_t i = 0; i < count(); ++i) ASSERT_EQ(a[i], 2 * i);
}

TEST_P(memory, TheSamePlaceAgainAndAgain) {
  const auto a = make(GetParam(), count());
  buffer_access use(a.data(), count() * sizeof(word), host_use::read, true);
  const void* const place = use.data();
  for (word round = 1; round < 4; ++round) {
    run_fill(a, round);
    use.refresh();
    ASSERT_EQ(use.data(), place);
    for (std::size_t i = 0; i < count(); i += 97) ASSERT_EQ(words(use)[i], round + i);
  }
}

const char* name_of(const testing::TestParamInfo<place>& info) {
  static constexpr const char* names[] = {"Device", "Striped", "Host", "Small"};
  return names[static_cast<int>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Kinds, memory, testing::Values(place::device, place::striped, place::host, place::small),
                         name_of);

TEST(buffer_access, KeepsTheAlignment) {
  const hpe::array<std::byte> a(3 * mebi);
  for (const std::size_t offset : {0UL, 1UL, 511UL, 4095UL, 4096UL, 70001UL}) {
    const buffer_access use(a.data() + offset, 100000, host_use::write);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(use.data()) % 4096,
              reinterpret_cast<std::uintptr_t>(a.data() + offset) % 4096);
  }
}

TEST(buffer_access, WaitsForTheKernelThatWritesIt) {
  const hpe::array<word> a(1000);
  hpe::launch(test_kernel().increment, hpe::grid(1), {a.data(), 1000, 3, 200000}, inout(a));
  const buffer_access use(a.data(), 4000, host_use::read);
  EXPECT_EQ(words(use)[999], 3U);
}

TEST(buffer_access, AWriteComesAfterAKernelThatReads) {
  const hpe::array<word> a(1000);
  const hpe::array<word> b(1000);
  run_fill(a, 5);
  hpe::launch(test_kernel().increment, hpe::grid(1), {b.data(), 1000, 0, 100000}, inout(b));
  hpe::launch(test_kernel().add, hpe::grid(1), {b.data(), a.data(), b.data(), 1000}, out(b), hpe::in(a));
  buffer_access use(a.data(), 4000, host_use::write);
  std::memset(use.data(), 0, 4000);
  use.written();
  for (std::size_t i = 0; i < 1000; ++i) ASSERT_EQ(b[i], 5 + i);
  EXPECT_EQ(a[1], 0U);
}

TEST(buffer_access, NothingIsFetchedForAWrite) {
  const hpe::array<word> a(2 * mebi);
  run_fill(a, 1);
  hpeSynchronize();
  hpeResetStatistics();
  buffer_access use(a.data() + 3, 4 * mebi, host_use::write);
  std::memset(use.data(), 1, 4 * mebi);
  use.written();
  hpeStatistics after{};
  hpeGetStatistics(&after);
  EXPECT_EQ(after.bytes_to_host, 0U);
  EXPECT_EQ(after.bytes_to_device, 4 * mebi);
  EXPECT_EQ(after.faults_read + after.faults_write, 0U);
}

// Host code writes a part of a block while a kernel and the host use the rest of the block.
TEST(buffer_access, NeighboursInTheSameBlockGoOn) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const hpe::array<word> a(2 * mebi);
  run_fill(a, 0);
  for (int round = 0; round < 40; ++round) {
    const std::size_t from = 1 + random() % (mebi / 2);
    const std::size_t n = 1 + random() % 5000;
    buffer_access arriving(a.data() + from, n * sizeof(word), host_use::write);
    std::memset(arriving.data(), round, n * sizeof(word) / 2);
    const auto before = a.subspan(0, from);
    hpe::launch(test_kernel().increment, hpe::grid(1), {before.data(), before.size(), 1, 0}, inout(before));
    a[from + n] += 1;
    if (round % 3 == 0) {
      ASSERT_EQ(a[0], word(round + 1));
    }
    std::memset(arriving.data(), round, n * sizeof(word));
    arriving.written();
    if (round % 2 == 0) a[from + n + 1] += 2;
    word expected = 0;
    std::memset(&expected, round, sizeof expected);
    for (std::size_t i = from; i < from + n; ++i) ASSERT_EQ(a[i], expected) << "round " << round;
    ASSERT_EQ(a[from + n], from + n + 1);
    run_fill(a, 0);
    hpe::launch(test_kernel().increment, hpe::grid(1), {a.data(), 1, word(round + 1), 0}, inout(a.subspan(0, 1)));
  }
}

TEST(buffer_access, SeveralThreadsInOneBlock) {
  constexpr std::size_t each = 1001;
  const hpe::array<word> a(8 * each);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (std::size_t t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      const auto mine = a.subspan(t * each, each);
      for (word round = 1; round <= 50; ++round) {
        if (t % 3 == 0) {
          hpe::launch(test_kernel().fill, hpe::grid(1), {mine.data(), each, round}, out(mine));
          const buffer_access use(mine.data(), each * sizeof(word), host_use::read);
          for (std::size_t i = 0; i < each; ++i) wrong += words(use)[i] != round + i;
        } else if (t % 3 == 1) {
          buffer_access use(mine.data(), each * sizeof(word), host_use::write);
          for (std::size_t i = 0; i < each; ++i) words(use)[i] = round;
          use.written();
          hpe::launch(test_kernel().increment, hpe::grid(1), {mine.data(), each, 1, 0}, inout(mine));
          const buffer_access again(mine.data(), each * sizeof(word), host_use::read);
          for (std::size_t i = 0; i < each; ++i) wrong += words(again)[i] != round + 1;
        } else {
          for (word& x : mine) x = round;
          buffer_access use(mine.data(), each * sizeof(word), host_use::read_write);
          for (std::size_t i = 0; i < each; ++i) words(use)[i] += 1;
          use.written();
          for (const word& x : mine) wrong += x != round + 1;
        }
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(buffer_access, OrdinaryMemoryPassesThrough) {
  word x[4] = {};
  buffer_access use(x, sizeof x, host_use::read_write);
  EXPECT_EQ(use.data(), x);
  EXPECT_FALSE(use.staged());
  use.refresh();
  use.written();
  const buffer_access none(nullptr, 0, host_use::write);
  EXPECT_EQ(none.data(), nullptr);
}

TEST(buffer_access, ARangeThatLeavesItsAllocationIsRefused) {
  const hpe::array<word> a(mebi);
  try {
    const buffer_access use(a.data() + 1, mebi * sizeof(word), host_use::read);
    FAIL();
  } catch (const hpe::error& e) {
    EXPECT_EQ(e.status(), HPE_ERROR_NOT_A_REGION);
    EXPECT_NE(std::string(e.what()).find("4 bytes past the end"), std::string::npos) << e.what();
  }
}

TEST(buffer_access, MemoryThatWasFreedIsRefused) {
  void* p = nullptr;
  ASSERT_EQ(hpeMalloc(&p, 4 * mebi), HPE_SUCCESS);
  buffer_access use(p, 100, host_use::write);
  ASSERT_EQ(hpeFree(p), HPE_SUCCESS);
  EXPECT_THROW(use.written(), hpe::error);
  EXPECT_THROW(buffer_access(p, 100, host_use::read), hpe::error);
}

TEST(buffer_access, InAChildOfForkNothingIsHpes) {
  const hpe::array<word> a(10);
  const pid_t child = ::fork();
  if (child == 0) {
    const buffer_access use(a.data(), 40, host_use::read);
    ::_exit(use.staged() || use.data() != a.data() ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
