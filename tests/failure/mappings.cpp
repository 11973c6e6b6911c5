// The operating system limits the mappings of a process (vm.max_map_count), and each stretch of pages with the same
// protection is one mapping. When mappings run out, hpe keeps each allocation coherent as a whole, which is slower but
// correct.

#include <malloc.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <numeric>
#include <thread>

#include "hpe/hpe.hpp"
#include "tests/core/kernels.h"
#include "tests/failure/child.h"
#include "tests/os/used_mappings.h"

namespace {

using namespace failure_test;
using hpe::inout;
using hpe::out;
using numbers = hpe::array<std::uint32_t>;

constexpr std::size_t mebi = std::size_t{1} << 20;

// Makes malloc map its memory before the test, so that only hpe runs out of mappings.
void feed_malloc() {
  ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_MMAP_THRESHOLD, 1 << 30);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  ::mallopt(M_TOP_PAD, 64 << 20);
  std::free(std::malloc(1 << 20));
}

class Mappings : public testing::Test {
 protected:
  void SetUp() override {
    if (sanitizer_needs_mappings) GTEST_SKIP() << why_not_sanitized;
    if (most_mappings() > 1'000'000) GTEST_SKIP() << "vm.max_map_count is too large to be reached";
  }
};

void check_degraded(const ended& child) {
  EXPECT_TRUE(child.well()) << child;
  EXPECT_TRUE(child.said("vm.max_map_count")) << child;
}

// An array of the first size ends inside a granule. An array of the second size fills its granules.
constexpr std::size_t counts[] = {mebi + 5, 2 * mebi};

TEST_F(Mappings, RunOutWhileTheHostReads) {
  check_degraded(run_child([] {
    feed_malloc();
    for (const std::size_t n : counts) {
      const numbers a(n);
      const numbers b(n);
      const numbers c(n);
      for (const numbers* x : {&a, &b, &c})
        hpe::launch(test_kernel().fill, hpe::grid(test_tiles), {x->data(), n, 3}, out(*x));
      hpe::check(hpeResetStatistics());
      const used_mappings taken;
      for (std::size_t i = 0; i < n; i += 777) check(b[i] == 3 + i);
      check(hpe::statistics().degraded >= 1);
      for (const numbers* x : {&a, &b, &c}) {
        for (std::size_t i = 0; i < n; ++i) check((*x)[i] == 3 + i);
        hpe::launch(test_kernel().increment, hpe::grid(test_tiles), {x->data(), n, 1, 0}, inout(*x));
        for (std::size_t i = 0; i < n; ++i) check((*x)[i] == 4 + i);
      }
    }
  }));
}

TEST_F(Mappings, RunOutWhileTheHostWrites) {
  check_degraded(run_child([] {
    feed_malloc();
    for (const std::size_t n : counts) {
      const numbers a(n);
      const numbers b(n);
      const numbers c(n);
      hpe::check(hpeResetStatistics());
      const used_mappings taken;
      for (const numbers* x : {&a, &b, &c}) {
        for (std::size_t i = 0; i < n; i += 2) (*x)[n - 1 - i] = 1;
        hpe::launch(test_kernel().increment, hpe::grid(test_tiles), {x->data(), n, 1, 0}, inout(*x));
      }
      for (const numbers* x : {&a, &b, &c})
        for (std::size_t i = 0; i < n; ++i) check((*x)[n - 1 - i] == (i % 2 == 0 ? 2U : 1U));
      check(hpe::statistics().degraded >= 1);
    }
  }));
}

// The host writes the array in order, and hpe uploads and closes the blocks that the host has finished.
TEST_F(Mappings, RunOutBehindASequentialWriter) {
  check_degraded(run_child(
      [] {
        feed_malloc();
        const std::size_t n = 4 * mebi;
        const numbers a(n);
        hpe::advise(a.data(), HPE_ADVISE_ROLLING);
        hpe::check(hpeResetStatistics());
        const used_mappings taken;
        std::iota(a.begin(), a.end(), 0U);
        hpe::launch(test_kernel().increment, hpe::grid(test_tiles), {a.data(), n, 1, 0}, inout(a));
        for (std::size_t i = 0; i < n; ++i) check(a[i] == i + 1);
        check(hpe::statistics().degraded == 1);
      },
      {{"HPE_ROLLING_WINDOW", "64k"}}));
}

// A launch uses a part of the host's data, while another thread writes other bytes of the same allocation.
TEST_F(Mappings, RunOutInALaunch) {
  check_degraded(run_child([] {
    feed_malloc();
    for (int round = 0; round < 4; ++round) {
      const std::size_t n = 2 * mebi + static_cast<std::size_t>(round % 2);
      const numbers a(n, round < 3 ? hpe::on_device(round) : hpe::cyclic_distribution());
      std::iota(a.begin(), a.end(), 0U);
      hpe::check(hpeResetStatistics());
      std::atomic<bool> start{false};
      std::atomic<std::size_t> written{0};
      // Each element is written only once, in scattered order, so that a lost write is noticed.
      constexpr std::size_t places = mebi / 2 - 1;
      std::thread writer([&] {
        while (!start) std::this_thread::yield();
        for (std::size_t k = 0; k < places; ++k) {
          a[k * 7919 % places] += 1;
          for (int slow = 0; slow < 8; ++slow) written.store(k, std::memory_order_seq_cst);
        }
      });
      const used_mappings taken;
      start = true;
      while (written < 1000) std::this_thread::yield();
      const auto part = a.subspan(n / 2, n / 4);
      hpe::launch(test_kernel().increment, hpe::grid(test_tiles), {part.data(), part.size(), 7, 0}, inout(part));
      writer.join();
      check(hpe::statistics().degraded == 1);
      for (std::size_t i = 0; i < n; ++i) {
        std::size_t expected = i;
        if (i < places) expected += 1;
        if (i >= n / 2 && i < n / 2 + n / 4) expected += 7;
        check(a[i] == expected, std::to_string(i));
      }
    }
  }));
}

// When mappings run out, the allocation becomes one block, and hpe must upload all of the host's writes; but one of the
// block's two homes is lost.
TEST_F(Mappings, RunOutInALaunchThatFails) {
  check_degraded(run_child([] {
    feed_malloc();
    const std::size_t n = 4 * mebi;
    const numbers a(n, hpe::block_distribution({0, 1}));
    hpe::advise(a.data(), HPE_ADVISE_LAZY);
    std::iota(a.begin(), a.end(), 0U);
    kill_device(1);
    const used_mappings taken;
    const auto part = a.subspan(n / 8, n / 8);
    const hpeShape shape = hpe::grid(test_tiles);
    const fill_parameters p{part.data(), part.size(), 7};
    const hpeAccess access{part.data(), part.size() * sizeof(std::uint32_t), HPE_OUT};
    const hpeStatus status = hpeLaunch(0, test_kernel().fill.get(), &shape, &p, sizeof p, &access, 1);
    check(status == HPE_ERROR_DEVICE_LOST, hpeStatusName(status));
    for (std::size_t i = 0; i < n; ++i) check(a[i] == i, "a launch that failed lost what the host wrote");
  }));
}

TEST_F(Mappings, AllocationsFailCleanlyAndFreeWorks) {
  const ended child = run_child([] {
    feed_malloc();
    const std::uint64_t before = hpe::device_info(0).memory_free;
    numbers a(2 * mebi);
    numbers b(2 * mebi);
    numbers c(mebi + 5);
    b[5] = 1;
    {
      const std::uint64_t free = hpe::device_info(0).memory_free;
      used_mappings taken;
      void* p = nullptr;
      for (int i = 0; i < 5; ++i)
        if (hpeMalloc(&p, 3 * mebi) == HPE_SUCCESS) hpe::check(hpeFree(p));
      check(hpe::device_info(0).memory_free == free, "a failed allocation keeps memory");
      hpe::check(hpeFree(std::exchange(b, numbers()).data()));
      taken.give_back();
    }
    a = {};
    c = {};
    check(hpe::device_info(0).memory_free == before, "device memory was not freed");
    const numbers again(4 * mebi);
    for (const std::uint32_t x : again.span()) check(x == 0);
  });
  EXPECT_TRUE(child.well()) << child;
}

}  // namespace
