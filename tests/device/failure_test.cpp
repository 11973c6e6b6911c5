// Kernels that crash and device processes that die.

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/granule.h"
#include "runtime/device/device_ptx_module.h"
#include "tests/device/kernels.h"
#include "tests/device/processes.h"
#include "tests/device/support.h"

namespace device_test {
namespace {

using hpe::timepoint;
using hpe::device::priority;
using clock = std::chrono::steady_clock;

constexpr std::size_t granule = hpe::granule_size;

class crashing_kernel : public testing::Test {
 protected:
  machine m{"soft:2x1"};
  std::string sentence;

  hpeStatus run(const std::string& kernel, const load_parameters& parameters) {
    const timepoint point = m.launch(m.stream(1), kernel, parameters);
    EXPECT_TRUE(m.set().wait(point, in(20s)));
    const auto failure = m.set().status_of(point);
    if (!failure) return HPE_SUCCESS;
    sentence = failure->what();
    return failure->status();
  }
  bool says(const std::string& words) const { return sentence.find(words) != std::string::npos; }

  void TearDown() override {
    // The device continues after each failure.
    EXPECT_FALSE(m.device(1).lost());
    EXPECT_EQ(run("empty", {}), HPE_SUCCESS);
  }
};

TEST_F(crashing_kernel, null_pointer) {
  EXPECT_EQ(run("load", {nullptr, nullptr}), HPE_ERROR_LAUNCH_FAILED);
  EXPECT_TRUE(says("\"load\" on device 1") && says("0x0") && says("SIGSEGV")) << sentence;
}

TEST_F(crashing_kernel, address_without_memory) {
  EXPECT_EQ(run("load", {m.at<std::uint64_t>(1, 8), nullptr}), HPE_ERROR_LAUNCH_FAILED);
  EXPECT_TRUE(
      says(fmt::format("{:#x}, which is not mapped on device 1", m.layout().base + m.layout().segment_size + 8)))
      << sentence;
}

TEST_F(crashing_kernel, memory_of_a_device_that_is_no_peer) {
  m.device(0).map(m.address(0), granule);
  EXPECT_EQ(run("load", {m.at<std::uint64_t>(0), nullptr}), HPE_ERROR_LAUNCH_FAILED);
}

TEST_F(crashing_kernel, memory_that_was_unmapped) {
  m.device(1).map(m.address(1), granule);
  EXPECT_EQ(run("load", {m.at<std::uint64_t>(1), m.at<std::uint64_t>(1, 8)}), HPE_SUCCESS);
  m.device(1).unmap(m.address(1), granule);
  EXPECT_EQ(run("load", {m.at<std::uint64_t>(1), nullptr}), HPE_ERROR_LAUNCH_FAILED);
}

TEST_F(crashing_kernel, address_that_cannot_exist) {
  EXPECT_EQ(run("load", {reinterpret_cast<const std::uint64_t*>(0xdead000000000000), nullptr}),
            HPE_ERROR_LAUNCH_FAILED);
  EXPECT_TRUE(says("non-canonical address")) << sentence;
}

TEST_F(crashing_kernel, division_by_zero) {
  m.device(1).map(m.address(1), granule);
  EXPECT_EQ(run("divide", {m.at<std::uint64_t>(1), m.at<std::uint64_t>(1, 8)}), HPE_ERROR_LAUNCH_FAILED);
  EXPECT_TRUE(says("SIGFPE")) << sentence;
}

TEST_F(crashing_kernel, stack_overflow) {
  m.device(1).map(m.address(1), granule);
  EXPECT_EQ(run("overflow_stack", {nullptr, m.at<std::uint64_t>(1)}), HPE_ERROR_LAUNCH_FAILED);
  EXPECT_TRUE(says("SIGSEGV")) << sentence;
}

TEST_F(crashing_kernel, exception) {
  EXPECT_EQ(run("throw_something", {}), HPE_ERROR_LAUNCH_FAILED);
  EXPECT_TRUE(says("thrown by a kernel")) << sentence;
}

TEST(failures, are_taken_once_and_oldest_first) {
  machine m("soft:2");
  auto& second = m.device(0).create_stream(priority::launch);
  const auto fail = [&](hpe::device::stream& on) {
    EXPECT_EQ(m.outcome(m.launch(on, "load", load_parameters{})), HPE_ERROR_LAUNCH_FAILED);
  };
  fail(m.stream(1));
  fail(second);
  fail(m.stream(0));
  fail(m.stream(1));
  const auto taken_device = [&](int device) {
    const auto failure = m.set().take_failure(device);
    if (!failure) return -1;
    EXPECT_EQ(failure->status(), HPE_ERROR_LAUNCH_FAILED);
    return std::string(failure->what()).find("on device 1") != std::string::npos ? 1 : 0;
  };
  EXPECT_EQ(taken_device(-1), 1);
  EXPECT_EQ(taken_device(-1), 0);
  EXPECT_EQ(taken_device(1), 1);
  EXPECT_EQ(taken_device(1), -1);
  EXPECT_EQ(taken_device(-1), 0);
  EXPECT_EQ(taken_device(-1), -1);
  EXPECT_EQ(thrown_by([&] { m.set().take_failure(2); }), HPE_ERROR_INVALID_DEVICE);
}

TEST(failures, are_taken_once_by_threads_that_take_them_at_the_same_time) {
  machine m("soft:2");
  constexpr int of_each = 100;
  std::map<std::string, int> taken;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < of_each; ++i)
      for (unsigned d = 0; d < 2; ++d)
        m.launch(m.stream(d), "load", load_parameters{m.at<std::uint64_t>(16, 8 * (of_each * round + i)), nullptr});
    for (unsigned d = 0; d < 2; ++d) m.set().wait(m.stream(d).last(), in(20s));
    std::array<std::vector<std::string>, 3> found;
    {
      std::vector<std::jthread> takers;
      for (auto& own : found)
        takers.emplace_back([&m, &own] {
          while (const auto failure = m.set().take_failure(-1)) own.emplace_back(failure->what());
        });
    }
    for (const auto& own : found)
      for (const std::string& words : own) ++taken[words];
  }
  EXPECT_EQ(taken.size(), 2U * 20 * of_each);
  for (const auto& [words, times] : taken) EXPECT_EQ(times, 1) << words;
}

TEST(failures, the_last_hundred_of_a_stream_are_kept) {
  machine m("soft:1");
  std::vector<timepoint> points;
  for (int i = 0; i < 300; ++i) points.push_back(m.launch(m.stream(0), "load", load_parameters{}));
  for (int i = 299; i >= 200; --i) EXPECT_EQ(m.outcome(points[i]), HPE_ERROR_LAUNCH_FAILED) << i;
  m.finish(m.launch(m.stream(0), "empty", load_parameters{}));
  int taken = 0;
  while (m.set().take_failure(-1)) ++taken;
  EXPECT_GE(taken, 100);
}

TEST(failures, one_thread_of_many_crashes) {
  const environment threads{{"HPE_SOFT_THREADS", "4"}};
  machine m("soft:1");
  m.device(0).map(m.address(0), granule);
  EXPECT_EQ(m.device(0).info().compute_units, 4U);
  // The last tiles are outside of the memory.
  const auto beyond =
      m.launch(m.stream(0), "add", add_parameters{m.at<std::uint32_t>(0), granule / 4 / 64, 1}, {{65, 1, 1}, {}});
  EXPECT_EQ(m.outcome(beyond), HPE_ERROR_LAUNCH_FAILED);
  m.stream(0).fill(m.address(0), 0, granule);
  m.launch(m.stream(0), "add", add_parameters{m.at<std::uint32_t>(0), granule / 4 / 64, 1}, {{64, 1, 1}, {}});
  host_buffer back(m.set(), granule);
  m.finish(m.stream(0).copy(back.data(), m.address(0), granule));
  for (const std::uint32_t value : back.as<std::uint32_t>()) ASSERT_EQ(value, 1U);
}

TEST(failures, out_of_memory_names_the_free_bytes) {
  const environment memory{{"HPE_SOFT_MEMORY", "8M"}};
  machine m("soft:1");
  m.device(0).map(m.address(0), 6 * MiB);
  const auto words = words_of([&] { m.device(0).map(m.address(0, 6 * MiB), 4 * MiB); });
  EXPECT_NE(words.find("2097152 of 8388608 bytes of memory left; 4194304 bytes were requested"), std::string::npos)
      << words;
  m.device(0).map(m.address(0, 6 * MiB), 2 * MiB);
  EXPECT_EQ(m.device(0).memory().free, 0U);
}

// Three devices; the first is killed while it works.
class lost_device : public testing::Test {
 protected:
  machine m{"soft:3"};
  clock::time_point killed_at;

  void kill_first() {
    const auto pids = soft_devices_of(::getpid());
    ASSERT_EQ(pids.size(), 3U);
    killed_at = clock::now();
    ASSERT_EQ(::kill(pids[0], SIGKILL), 0);
  }
  void expect_soon() const { EXPECT_LT(clock::now() - killed_at, 2s); }

  void expect_lost() {
    EXPECT_TRUE(eventually([&] { return m.device(0).lost(); }, 2s));
    const auto lost = [](auto call) { EXPECT_EQ(thrown_by(call), HPE_ERROR_DEVICE_LOST); };
    lost([&] { m.launch(m.stream(0), "empty", load_parameters{}); });
    lost([&] { m.stream(0).fill(m.address(0), 0, 1); });
    lost([&] { m.device(0).map(m.address(0, 64 * MiB), granule); });
    lost([&] { m.device(0).create_stream(priority::launch); });
    EXPECT_NE(words_of([&] { m.launch(m.stream(0), "empty", load_parameters{}); }).find("device 0 is lost"),
              std::string::npos);

    const auto failure = m.set().take_failure(-1);
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->status(), HPE_ERROR_DEVICE_LOST);
    EXPECT_NE(std::string(failure->what()).find("SIG"), std::string::npos) << failure->what();
    EXPECT_FALSE(m.set().take_failure(-1));

    // The other devices continue: they wait for each other and accept new work.
    for (unsigned d = 1; d < 3; ++d) {
      EXPECT_FALSE(m.device(d).lost());
      m.device(d).map(m.address(d, 64 * MiB), granule);
      m.finish(m.stream(d).fill(m.address(d, 64 * MiB), 1, granule));
    }
    m.finish(m.stream(1).copy(m.address(2, 64 * MiB), m.address(1, 64 * MiB), granule));
    m.set().find_kernel(0, "number_tiles");
    m.device(1).unmap(m.address(1, 64 * MiB), granule);
  }
};

TEST_F(lost_device, in_the_middle_of_a_launch) {
  m.device(0).map(m.address(0), granule);
  m.device(1).map(m.address(1), granule);
  m.finish(m.launch(m.stream(0), "empty", load_parameters{}));
  const timepoint early = m.stream(0).last();
  const timepoint running = m.launch(m.stream(0), "rest", rest_parameters{60'000'000, nullptr, 0});
  const timepoint behind = m.stream(0).fill(m.address(0), 1, granule);
  m.stream(1).wait(behind);
  const timepoint elsewhere = m.launch(m.stream(1), "add", add_parameters{m.at<std::uint32_t>(1), 1, 1});

  std::vector<std::jthread> waiters;
  std::atomic<int> woken{0};
  for (int i = 0; i < 4; ++i)
    waiters.emplace_back([&, i] {
      EXPECT_TRUE(m.set().wait(i % 2 == 0 ? running : behind, in(20s)));
      ++woken;
    });
  waiters.emplace_back([&] {
    const auto gate = m.set().create_gate();
    while (!m.set().reached(running)) gate->sleep(std::span(&running, 1), in(20s));
    ++woken;
  });
  waiters.emplace_back([&] {  // this thread queues work until the device is lost
    EXPECT_EQ(thrown_by([&] {
                for (;; std::this_thread::sleep_for(10us)) m.stream(0).fill(m.address(0), 1, 1);
              }),
              HPE_ERROR_DEVICE_LOST);
    ++woken;
  });
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(woken, 0);
  kill_first();
  waiters.clear();
  expect_soon();
  EXPECT_EQ(m.outcome(running), HPE_ERROR_DEVICE_LOST);
  EXPECT_EQ(m.outcome(behind), HPE_ERROR_DEVICE_LOST);
  EXPECT_EQ(m.outcome(m.stream(0).last()), HPE_ERROR_DEVICE_LOST);
  EXPECT_EQ(m.outcome(early), HPE_SUCCESS);
  EXPECT_EQ(m.outcome(elsewhere), HPE_SUCCESS);  // the waiting stream is released without an error
  expect_soon();
  expect_lost();
}

TEST_F(lost_device, while_another_waits_for_it_again_and_again) {
  for (int i = 0; i < 20; ++i) {
    m.launch(m.stream(0), "rest", rest_parameters{1000, nullptr, 0});
    m.stream(1).wait(m.stream(0).last());
    m.stream(0).wait(m.stream(1).last());
  }
  kill_first();
  EXPECT_EQ(m.outcome(m.stream(1).last()), HPE_SUCCESS);
  expect_soon();
  expect_lost();
}

TEST_F(lost_device, by_a_kernel_that_aborts) {
  killed_at = clock::now();
  EXPECT_EQ(m.outcome(m.launch(m.stream(0), "abort_process", load_parameters{})), HPE_ERROR_DEVICE_LOST);
  expect_soon();
  expect_lost();
}

TEST(lost_device_on_a_slow_link, in_the_middle_of_a_copy) {
  const environment links{{"HPE_SOFT_HOST_LINK", "4M:0"}};
  machine m("soft:3");
  for (unsigned d = 0; d < 2; ++d) m.device(d).map(m.address(d), 64 * MiB);
  host_buffer host(m.set(), 64 * MiB);
  const timepoint copying = m.stream(0).copy(m.address(0), host.data(), 64 * MiB);  // the copy would take 16 s
  m.stream(1).wait(copying);
  const timepoint behind = m.launch(m.stream(1), "empty", load_parameters{});
  std::this_thread::sleep_for(100ms);
  EXPECT_FALSE(m.set().reached(copying));
  const auto pids = soft_devices_of(::getpid());
  ASSERT_EQ(pids.size(), 3U);
  const auto killed_at = clock::now();
  ASSERT_EQ(::kill(pids[0], SIGKILL), 0);
  EXPECT_EQ(m.outcome(copying), HPE_ERROR_DEVICE_LOST);
  EXPECT_EQ(m.outcome(behind), HPE_SUCCESS);
  // The other devices can use the link again.
  m.finish(m.stream(1).copy(m.address(1), host.data(), MiB));
  EXPECT_LT(clock::now() - killed_at, 2s);
}

TEST(lost_devices, all_devices_are_lost) {
  machine m("soft:2");
  for (const pid_t pid : soft_devices_of(::getpid())) ::kill(pid, SIGKILL);
  EXPECT_TRUE(eventually([&] { return m.device(0).lost() && m.device(1).lost(); }, 2s));
  EXPECT_EQ(thrown_by([&] { m.set().load_module(DEVICE_TEST_KERNELS); }), HPE_ERROR_DEVICE_LOST);
  EXPECT_TRUE(soft_devices_of(::getpid()).empty());
}

}  // namespace
}  // namespace device_test
