// Host pages that hpe allocates and pins for GPUs before a copy uses them. DEVICE_TEST_GPUS names the devices: those of
// this machine, or those of the stand-in driver.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

#include "runtime/base/granule.h"
#include "runtime/device/cuda/cuda_set.h"
#include "runtime/os/virtual_memory.h"
#include "tests/device/failing_driver.h"
#include "tests/device/support.h"

namespace device_test {
namespace {

using hpe::device::priority;
using hpe::device::cuda::cuda_pinned_memory;
using hpe::device::cuda::cuda_set;

constexpr std::size_t granule = hpe::granule_size;
constexpr std::size_t bytes = 64 * MiB;

hpe::options with_budget(std::uint64_t prepared) {
  hpe::options result;
  result.prepared_memory = prepared;
  return result;
}

/// One GPU with a stream, and memory on it that is as large as the host memory of a test.
class gpu {
 public:
  explicit gpu(const hpe::options& chosen) : set(failing_driver(), 1, layout_, chosen) {
    set.at(0).map(memory(), bytes);
  }

  [[nodiscard]] std::byte* memory(std::size_t at = 0) const {
    return reinterpret_cast<std::byte*>(layout_.base + at);  // NOLINT(performance-no-int-to-ptr): of the layout
  }
  /// Waits until `size` bytes, beginning at p, are prepared. Returns false if this takes more than 20 s.
  [[nodiscard]] bool prepares(const std::byte* p, std::size_t size) const {
    for (const auto end = in(20s); set.prepared_host(p, size) < size; std::this_thread::yield())
      if (std::chrono::steady_clock::now() > end) return false;
    return true;
  }
  void copy(void* to, const void* from, std::size_t size) {
    EXPECT_TRUE(set.wait(stream->copy(to, from, size), in(20s)));
  }

 private:
  const hpe::uvas_layout layout_ = layout_for(2);
  hpe::os::reservation space_{layout_.base, layout_.size(), granule};

 public:
  cuda_set set;
  hpe::device::stream* stream = &set.at(0).create_stream(priority::launch);
};

std::uint32_t* numbers(std::byte* p) { return reinterpret_cast<std::uint32_t*>(p); }

bool all_zero(const std::byte* p, std::size_t size) {
  return std::all_of(p, p + size, [](std::byte b) { return b == std::byte{0}; });
}

class prepared_memory : public testing::TestWithParam<const char*> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(prepared_memory);
INSTANTIATE_TEST_SUITE_P(cuda, prepared_memory, testing::ValuesIn(DEVICE_TEST_GPUS), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
});

TEST_P(prepared_memory, is_zero_and_there_before_a_copy) {
  gpu g(with_budget(4 * bytes));
  const host_buffer host(g.set, bytes);
  EXPECT_EQ(g.set.prepared_host(host.data(), bytes), 0U);
  g.set.prepare_host(host.data(), bytes - 5000);
  EXPECT_TRUE(g.prepares(host.data(), bytes - 5000));
  EXPECT_EQ(g.set.prepared_host(host.data() + 3 * granule + 100, granule), granule);
  EXPECT_TRUE(all_zero(host.data(), bytes));
  g.set.release_host(host.data() + bytes / 2, bytes / 2);
  EXPECT_EQ(g.set.prepared_host(host.data() + bytes / 2, bytes / 2), 0U);
}

TEST_P(prepared_memory, takes_copies_while_it_is_being_prepared) {
  gpu g(with_budget(4 * bytes));
  for (std::uint32_t round = 0; round < 8; ++round) {
    const host_buffer host(g.set, bytes);
    std::uint32_t* const first = numbers(host.data());
    g.set.prepare_host(host.data(), bytes);
    // Copies from the first pages, from pages in the middle and from the last pages, which perhaps no thread has
    // allocated yet.
    for (const std::size_t at : {std::size_t{0}, 21 * MiB + 4096, bytes - granule}) {
      std::uint32_t* const part = first + at / sizeof *first;
      std::iota(part, part + 1000, round);
      g.copy(g.memory(at), part, granule);
      std::fill_n(part, 1000, 77U);
      g.copy(part, g.memory(at), granule);
      for (std::uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(part[i], round + i);
      EXPECT_EQ(part[1001], 0U);
    }
  }
}

TEST_P(prepared_memory, may_be_released_and_forked_while_it_is_being_prepared) {
  gpu g(with_budget(4 * bytes));
  const host_buffer host(g.set, bytes);
  hpe::os::exclude_from_fork(host.data(), bytes);
  for (int round = 0; round < 10; ++round) {
    g.set.prepare_host(host.data(), bytes);
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    ASSERT_GT(child, 0);
    host.data()[round * 4096] = std::byte{5};
    if (round % 2 == 0) g.set.release_host(host.data(), bytes);
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(host.data()[round * 4096], std::byte{5});
  }
  EXPECT_TRUE(g.prepares(host.data(), bytes)) << "the last round did not release the prepared memory";
}

TEST_P(prepared_memory, has_a_budget_that_copies_give_back) {
  constexpr std::size_t budget = 32 * MiB;
  gpu g(with_budget(budget));
  const host_buffer host(g.set, bytes);
  g.set.prepare_host(host.data(), bytes);
  EXPECT_TRUE(g.prepares(host.data(), budget / 2));
  EXPECT_LE(g.set.prepared_host(host.data(), bytes), budget);
  for (std::size_t at = 0; at < bytes / 2; at += granule) g.copy(g.memory(at), host.data() + at, granule);
  EXPECT_TRUE(g.prepares(host.data(), bytes * 3 / 4));
}

TEST_P(prepared_memory, is_not_made_without_a_budget) {
  gpu g(with_budget(0));
  const host_buffer host(g.set, bytes);
  g.set.prepare_host(host.data(), bytes);
  g.copy(g.memory(), host.data(), granule);
  // Starts the threads. If the budget allowed it, they would now also prepare the pages that were passed to
  // prepare_host above.
  g.set.expect_copies(host.data() + bytes / 2, bytes / 2);
  EXPECT_TRUE(g.prepares(host.data() + bytes / 2, bytes / 2));
  EXPECT_EQ(g.set.prepared_host(host.data() + bytes / 4, granule), 0U);
}

TEST_P(prepared_memory, makes_room_among_pinned_pages_like_copies) {
  hpe::options chosen = with_budget(bytes);
  chosen.pinned_memory = bytes / 2;
  gpu g(chosen);
  const host_buffer host(g.set, bytes);
  g.copy(g.memory(), host.data(), bytes / 2);
  g.set.prepare_host(host.data() + bytes * 3 / 4, bytes / 8);
  EXPECT_TRUE(g.prepares(host.data() + bytes * 3 / 4, bytes / 8));
  g.copy(host.data(), g.memory(), bytes / 2);
  EXPECT_TRUE(all_zero(host.data(), bytes));
}

TEST_P(prepared_memory, leaves_most_of_the_free_memory_alone) {
  const hpe::device::cuda::driver cu = failing_driver();
  CUcontext context = nullptr;
  ASSERT_EQ(cu.cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  const hpe::device::cuda::entered here(cu, context);
  std::atomic<std::size_t> free = bytes;
  std::atomic<int> asked = 0;
  {
    cuda_pinned_memory memory(cu, layout_for(2), {4 * bytes, 4 * bytes},
                              {[](hpe::timepoint) { return true; }, [](hpe::timepoint) {}, [&] { return context; },
                               [&] {
                                 ++asked;
                                 return static_cast<double>(free.load());
                               }});
    const auto file = hpe::os::create_memory_file("prepared", 2 * bytes);
    hpe::os::reservation place(0, 2 * bytes, granule);
    hpe::os::map_file(place.data(), 2 * bytes, hpe::os::page_protection::read_write, file.get(), 0);
    const auto at = reinterpret_cast<std::uintptr_t>(place.data());
    memory.insert(at, 2 * bytes, file.get(), 0);

    memory.prepare(at, 2 * bytes);
    for (const auto end = in(20s); asked < 2 && std::chrono::steady_clock::now() < end;) std::this_thread::yield();
    EXPECT_GE(asked, 2)
        << "hpe asks for the free memory before the first page, and again when a quarter of it is prepared";
    EXPECT_LE(memory.prepared(at, 2 * bytes), bytes / 4);

    free = 100 * bytes;
    memory.prepare(at, 2 * bytes);
    for (const auto end = in(20s); memory.prepared(at, 2 * bytes) < 2 * bytes;) {
      ASSERT_LT(std::chrono::steady_clock::now(), end);
      std::this_thread::yield();
    }
    memory.erase(at, 2 * bytes);
  }
  cu.cuDevicePrimaryCtxRelease(0);
}

}  // namespace
}  // namespace device_test
