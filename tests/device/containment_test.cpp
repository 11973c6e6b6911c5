// A device that fails, hangs or overwrites its state does not harm its owner or other devices.

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/granule.h"
#include "runtime/device/device_ptx_module.h"
#include "runtime/device/soft/shared/fabric.h"
#include "tests/device/kernels.h"
#include "tests/device/processes.h"
#include "tests/device/support.h"

namespace device_test {
namespace {

using hpe::timepoint;
using hpe::device::priority;
using hpe::device::soft::device_status;
using hpe::device::soft::fabric_common;
using clock = std::chrono::steady_clock;

constexpr std::size_t granule = hpe::granule_size;

TEST(queues, never_make_the_program_wait) {
  machine m("soft:1");
  m.device(0).map(m.address(0), granule);
  m.finish(m.stream(0).fill(m.address(0), 0, granule));
  const auto begin = clock::now();
  const timepoint running = m.launch(m.stream(0), "rest", rest_parameters{3'000'000, nullptr, 0});
  constexpr std::size_t commands = 5000;
  for (std::size_t i = 0; i < commands; ++i) {
    // Each launch sees the value that the previous launch wrote.
    m.launch(m.stream(0), "add", add_parameters{m.at<std::uint32_t>(0), 1, 1});
    if (i % 50 == 0) m.stream(0).copy(m.address(0, 4 + 4 * (i / 50)), m.address(0), 4);
  }
  EXPECT_FALSE(m.set().reached(running)) << "after " << std::chrono::duration<double>(clock::now() - begin).count()
                                         << " s";
  host_buffer back(m.set(), granule);
  m.finish(m.stream(0).copy(back.data(), m.address(0), granule));
  const auto values = back.as<std::uint32_t>();
  EXPECT_EQ(values[0], commands);
  for (std::size_t i = 0; i < commands / 50; ++i) EXPECT_EQ(values[1 + i], 50 * i + 1);
}

TEST(queues, of_two_streams_that_wait_for_each_other_are_both_fed) {
  machine m("soft:2");
  const timepoint first = m.launch(m.stream(0), "rest", rest_parameters{300'000, nullptr, 0});
  for (int i = 0; i < 400; ++i) {
    m.stream(1).wait(m.stream(0).last().none() ? first : m.stream(0).last());
    m.launch(m.stream(1), "empty", load_parameters{});
    m.stream(0).wait(m.stream(1).last());
    m.launch(m.stream(0), "empty", load_parameters{});
  }
  m.finish(m.stream(0).last());
  m.finish(m.stream(1).last());
}

TEST(corruption, of_the_shared_state_is_survived) {
  machine m("soft:2");
  m.device(0).map(m.address(0), granule);
  m.set().wait(m.launch(m.stream(0), "overwrite_shared_state", load_parameters{}), in(2s));
  EXPECT_TRUE(m.set().ptx()->take_output().empty());
  while (m.set().take_failure(0)) {
  }
  for (int i = 0; i < 1000; ++i) m.stream(0).fill(m.address(0), 1, 1);
  m.finish(m.launch(m.stream(1), "empty", load_parameters{}));
  EXPECT_FALSE(m.device(1).lost());
}

TEST(corruption, of_wait_queues_leaves_no_thread_asleep) {
  machine m("soft:2");
  const auto gate = m.set().create_gate();
  m.finish(m.launch(m.stream(0), "overwrite_wait_queues", load_parameters{}));
  const std::vector<timepoint> points{m.launch(m.stream(1), "rest", rest_parameters{300'000, nullptr, 0})};
  const auto begin = clock::now();
  while (!m.set().reached(points[0])) gate->sleep(points, in(30s));
  EXPECT_LT(clock::now() - begin, 10s);
}

TEST(corruption, does_not_reach_other_devices_nor_the_configuration) {
  const machine m("soft:3");
  std::vector<std::size_t> writable;
  for (const pid_t pid : soft_devices_of(::getpid())) {
    std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
    std::size_t& bytes = writable.emplace_back(0);
    unsigned long begin = 0, end = 0;
    for (std::string line; std::getline(maps, line);)
      if (line.find("hpe-fabric") != std::string::npos && line.find(" rw") != std::string::npos &&
          std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) == 2)
        bytes += end - begin;
  }
  // A device may write only the common section and its own status.
  constexpr std::size_t pages = 2 * 4096;
  for (const std::size_t bytes : writable) {
    EXPECT_GT(bytes, 0U);
    EXPECT_LT(bytes, sizeof(fabric_common) + sizeof(device_status) + pages);
  }
}

TEST(crashes, that_leave_malloc_locked_lose_the_device) {
  machine m("soft:2");
  const auto begin = clock::now();
  const timepoint point = m.launch(m.stream(0), "crash_in_malloc", load_parameters{});
  m.set().wait(point, in(20s));
  EXPECT_TRUE(eventually([&] { return m.device(0).lost(); }, 10s));
  EXPECT_LT(clock::now() - begin, 10s);
  const auto failure = m.set().status_of(point);
  ASSERT_TRUE(failure);
  EXPECT_NE(std::string(failure->what()).find("allocator of its process locked"), std::string::npos) << failure->what();
  m.finish(m.launch(m.stream(1), "empty", load_parameters{}));
}

TEST(time_limit, of_a_kernel_loses_its_device_and_names_it) {
  const environment limit{{"HPE_DEVICE_TIMEOUT", "1"}};
  machine m("soft:2");
  m.finish(m.launch(m.stream(0), "rest", rest_parameters{300'000, nullptr, 0}));
  const timepoint point = m.launch(m.stream(0), "rest", rest_parameters{60'000'000, nullptr, 0});
  m.stream(1).wait(point);
  const timepoint behind = m.launch(m.stream(1), "empty", load_parameters{});
  EXPECT_EQ(m.outcome(point), HPE_ERROR_DEVICE_LOST);
  EXPECT_EQ(m.outcome(behind), HPE_SUCCESS);  // a device that only waits for another device does not count as hanging
  const auto failure = m.set().status_of(point);
  EXPECT_NE(std::string(failure->what()).find("kernel \"rest\" ran for more than 1 s (HPE_DEVICE_TIMEOUT)"),
            std::string::npos)
      << failure->what();
  EXPECT_FALSE(m.device(1).lost());
}

TEST(time_limit, of_an_answer_loses_the_device) {
  const environment limit{{"HPE_DEVICE_TIMEOUT", "1"}};
  machine m("soft:2");
  ::kill(soft_devices_of(::getpid()).at(1), SIGSTOP);
  m.set().find_kernel(0, "empty");
  EXPECT_TRUE(eventually([&] { return m.device(1).lost(); }, 5s));
  EXPECT_NE(words_of([&] { m.device(1).map(m.address(1), granule); }).find("did not answer a request for 1 s"),
            std::string::npos);
  m.finish(m.launch(m.stream(0), "empty", load_parameters{}));
}

TEST(requests, a_failed_request_leaves_no_answer_and_no_socket) {
  const auto sockets = [] {
    std::vector<int> found;
    struct stat about {};
    for (int fd = 3; fd < 256; ++fd)
      if (::fstat(fd, &about) == 0 && S_ISSOCK(about.st_mode)) found.push_back(fd);
    return found;
  };
  const auto before = sockets();
  machine m("soft:2");
  m.device(0).map(m.address(0), granule);
  auto own = sockets();
  std::erase_if(own, [&](int fd) { return std::find(before.begin(), before.end(), fd) != before.end(); });
  ASSERT_EQ(own.size(), 4U);  // for each device: the connections to the device and to its keeper
  const int file = ::memfd_create("test", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(file, granule), 0);
  ::close(own[1]);  // the connection to the second device
  alignas(4096) static char memory[4096];
  const auto register_it = [&] { m.set().register_host(memory, sizeof memory, file, 0); };
  const std::string why = words_of(register_it);
  EXPECT_TRUE(eventually([&] { return m.device(1).lost(); }, 3s));
  // If there is no error, hpe had already noticed the end of the second device and asked only the first.
  if (why.empty())
    m.set().unregister_host(memory, sizeof memory);
  else
    EXPECT_NE(why.find("the program closed hpe's descriptors"), std::string::npos) << why;
  // The first device has removed the registration, and the device's answers match the requests.
  EXPECT_EQ(words_of(register_it), "");
  EXPECT_NE(words_of([&] { m.set().find_kernel(0, "no such kernel"); }).find("no such kernel"), std::string::npos);
  m.set().unregister_host(memory, sizeof memory);
  m.finish(m.launch(m.stream(0), "empty", load_parameters{}));
  ::close(file);
}

}  // namespace
}  // namespace device_test
