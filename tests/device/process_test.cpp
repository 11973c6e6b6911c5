// The processes of soft devices: their start, the resources that they inherit, and their end.

#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <thread>

#include "runtime/base/granule.h"
#include "runtime/base/own_process.h"
#include "runtime/os/thread.h"
#include "tests/device/kernels.h"
#include "tests/device/processes.h"
#include "tests/device/support.h"

namespace device_test {
namespace {

using clock = std::chrono::steady_clock;

TEST(start, names_the_program_that_is_missing) {
  const environment none{{"HPE_SOFTD", "/nowhere/hpe-softd"}};
  const auto open = [] { hpe::device::open_devices("soft:1", layout_for(2)); };
  EXPECT_EQ(thrown_by(open), HPE_ERROR_INITIALIZATION);
  EXPECT_NE(words_of(open).find("/nowhere/hpe-softd"), std::string::npos);
}

TEST(start, fails_when_the_program_ends_at_once) {
  const environment wrong{{"HPE_SOFTD", "/bin/false"}};
  const auto open = [] { hpe::device::open_devices("soft:2", layout_for(2)); };
  EXPECT_EQ(thrown_by(open), HPE_ERROR_INITIALIZATION);
  EXPECT_NE(words_of(open).find("/bin/false ended at once"), std::string::npos) << words_of(open);
}

TEST(start, fails_when_the_address_space_is_not_free) {
  auto layout = layout_for(2);
  layout.base = std::uintptr_t{1} << 47;  // belongs to the operating system
  const auto open = [&] { hpe::device::open_devices("soft:2", layout); };
  EXPECT_EQ(thrown_by(open), HPE_ERROR_INITIALIZATION);
  EXPECT_NE(words_of(open).find("HPE_ADDRESS_BASE"), std::string::npos) << words_of(open);
  EXPECT_TRUE(soft_devices_of(::getpid()).empty());
}

// Linux loads programs at random addresses in the last TiB below 0x7fff00000000, of which this address space leaves a
// fifteenth.
TEST(start, avoids_random_addresses_that_the_address_space_needs) {
  auto layout = layout_for(1);
  layout.base = std::uintptr_t{0x7f00} << 32;
  layout.segment_size = std::uint64_t{240} << 30;
  layout.segments = 4;
  EXPECT_EQ(hpe::device::open_devices("soft:2", layout)->size(), 2U);
}

TEST(start, too_many_streams_are_refused) {
  machine m("soft:1");
  for (int i = 1; i < 16; ++i) m.device(0).create_stream(hpe::device::priority::launch);
  EXPECT_EQ(thrown_by([&] { m.device(0).create_stream(hpe::device::priority::launch); }), HPE_ERROR_NOT_SUPPORTED);
}

TEST(processes, inherit_nothing_but_standard_output_and_error) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);  // the pipe is not closed by exec
  const std::string name = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(pipe[0]));
  machine m("soft:1");
  const auto pids = soft_devices_of(::getpid());
  ASSERT_EQ(pids.size(), 1U);
  int null_devices = 0;
  for (const std::string& file : open_files_of(pids[0])) {
    EXPECT_NE(file, name);
    null_devices += file == "/dev/null" ? 1 : 0;
  }
  EXPECT_GE(null_devices, 1);
  EXPECT_NE(group_of(pids[0]), ::getpgrp());
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST(processes, end_with_the_set_even_when_a_kernel_does_not) {
  auto m = std::make_unique<machine>("soft:2");
  m->launch(m->stream(0), "rest", rest_parameters{60'000'000, nullptr, 0});
  const auto pids = soft_devices_of(::getpid());
  ASSERT_EQ(pids.size(), 2U);
  const auto begin = clock::now();
  m.reset();
  EXPECT_LT(clock::now() - begin, 3s);
  for (const pid_t pid : pids) EXPECT_FALSE(exists(pid));  // not even as a zombie
}

// Returns the cores on which the kernels of each of two devices may run.
std::array<std::uint64_t, 2> cores_of_kernels() {
  machine m("soft:2");
  std::array<std::uint64_t, 2> cores{};
  for (unsigned d = 0; d < 2; ++d) {
    m.device(d).map(m.address(d), hpe::granule_size);
    m.finish(m.launch(m.stream(d), "tell_cores", cores_parameters{m.at<std::uint64_t>(d)}));
    host_buffer back(m.set(), sizeof cores[d]);
    m.finish(m.stream(d).copy(back.data(), m.address(d), sizeof cores[d]));
    cores[d] = back.as<std::uint64_t>()[0];
  }
  return cores;
}

TEST(processes, keep_their_kernels_to_shares_of_the_cores) {
  const unsigned all = hpe::os::usable_cores();
  if (all < 2 || all > 64) GTEST_SKIP() << "the kernel reports up to 64 cores, and two devices need one core each";
  if (hpe::rank_by_environment() != nullptr) GTEST_SKIP() << "started as a rank";
  const auto [first, second] = cores_of_kernels();
  EXPECT_EQ(first & second, 0U);
  EXPECT_EQ(static_cast<unsigned>(std::popcount(first)), all / 2);
  EXPECT_EQ(static_cast<unsigned>(std::popcount(second)), all - all / 2);
}

TEST(processes, run_their_kernels_on_any_core_where_others_may_divide_the_cores_too) {
  using variables = std::initializer_list<std::pair<const char*, const char*>>;
  for (const variables& v : {variables{{"OMPI_COMM_WORLD_RANK", "0"}}, variables{{"HPE_SOFT_THREADS", "1"}},
                             variables{{"HPE_SOFT_CORES", "any"}}}) {
    const environment here(v);
    const auto [first, second] = cores_of_kernels();
    EXPECT_EQ(first, second) << v.begin()->first;
    EXPECT_EQ(static_cast<unsigned>(std::popcount(first)), std::min(hpe::os::usable_cores(), 64U));
  }
  const environment wish{{"HPE_SOFT_CORES", "shares"}, {"HPE_SOFT_THREADS", "1"}};
  const auto [first, second] = cores_of_kernels();
  EXPECT_EQ((first & second) == 0, hpe::os::usable_cores() >= 2);
}

TEST(processes, have_their_part_of_the_cores_as_threads_but_at_least_one) {
  const unsigned all = hpe::os::usable_cores();
  for (const unsigned devices : {1U, 2U, 3U, 16U}) {
    const machine m("soft:" + std::to_string(devices));
    for (unsigned d = 0; d < devices; ++d)
      EXPECT_EQ(m.device(d).info().compute_units, std::max(1U, all / devices)) << d << " of " << devices;
  }
  const environment wish{{"HPE_SOFT_THREADS", "5"}};
  EXPECT_EQ(machine("soft:2").device(1).info().compute_units, 5U);
}

TEST(start, refuses_cores_that_cannot_be_meant) {
  const environment wish{{"HPE_SOFT_CORES", "all"}};
  const auto words = words_of([] { machine m("soft:2"); });
  EXPECT_NE(words.find("HPE_SOFT_CORES=\"all\" is none of shares, any and auto"), std::string::npos) << words;
}

TEST(processes, that_do_not_answer_are_killed) {
  auto m = std::make_unique<machine>("soft:2");
  const auto pids = soft_devices_of(::getpid());
  ASSERT_EQ(pids.size(), 2U);
  ::kill(pids[1], SIGSTOP);
  const auto begin = clock::now();
  m.reset();
  EXPECT_LT(clock::now() - begin, 5s);
  for (const pid_t pid : pids) EXPECT_FALSE(exists(pid));
}

TEST(processes, are_reaped_by_nobody_else_and_reap_nobody_else) {
  const pid_t own_child = ::fork();
  if (own_child == 0) ::_exit(7);
  {
    machine m("soft:1");
    const auto pids = soft_devices_of(::getpid());
    ASSERT_EQ(pids.size(), 1U);
    ::kill(pids[0], SIGKILL);
    EXPECT_TRUE(eventually([&] { return !exists(pids[0]); }, 2s));
  }
  int status = 0;
  ASSERT_EQ(::waitpid(own_child, &status, 0), own_child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(processes, are_no_children_that_the_program_waits_for) {
  const machine m("soft:2");
  const auto waits_for_all = [](int options) {
    while (::waitpid(-1, nullptr, WNOHANG | options) > 0) {
    }
    return errno;
  };
  for (const int options : {0, __WALL}) EXPECT_EQ(waits_for_all(options), ECHILD);
  EXPECT_EQ(soft_devices_of(::getpid()).size(), 2U);
}

TEST(processes, send_no_signal_of_a_child) {
  static std::atomic<int> signals{0};
  struct sigaction before {};
  struct sigaction count {};
  count.sa_handler = [](int) { ++signals; };
  ASSERT_EQ(::sigaction(SIGCHLD, &count, &before), 0);
  { const machine m("soft:2"); }
  ::sigaction(SIGCHLD, &before, nullptr);
  EXPECT_EQ(signals, 0);
}

TEST(processes, end_with_their_keeper) {
  const machine m("soft:1");
  const auto pids = soft_devices_of(::getpid());
  ASSERT_EQ(pids.size(), 1U);
  ::kill(parent_of(pids[0]), SIGKILL);
  EXPECT_TRUE(eventually([&] { return m.device(0).lost(); }, 3s));
}

TEST(start, names_the_limit_that_is_reached) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  // The number of files that this program has open decides which step reaches the limit first. So the test tries
  // several limits.
  bool named = false;
  for (rlim_t files = 8; files < 64 && !named; ++files) {
    const rlimit few{files, before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
    const std::string words = words_of([] { const machine m("soft:1"); });
    named = words.find(fmt::format("(ulimit -n) allows {}", files)) != std::string::npos;
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(named);
}

TEST(processes, of_a_program_that_ignores_its_children) {
  struct sigaction before {};
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ASSERT_EQ(::sigaction(SIGCHLD, &ignore, &before), 0);
  {
    machine m("soft:2");
    const auto pids = soft_devices_of(::getpid());
    ASSERT_EQ(pids.size(), 2U);
    ::kill(pids[0], SIGKILL);
    EXPECT_TRUE(eventually([&] { return m.device(0).lost(); }, 2s));
    m.finish(m.launch(m.stream(1), "empty", load_parameters{}));
  }
  ::sigaction(SIGCHLD, &before, nullptr);
}

TEST(processes, are_left_alone_by_a_forked_child) {
  auto m = std::make_unique<machine>("soft:2");
  const pid_t child = ::fork();
  if (child == 0) {
    m.reset();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  for (unsigned d = 0; d < 2; ++d) m->finish(m->launch(m->stream(d), "empty", load_parameters{}));
}

TEST(processes, of_two_sets_do_not_meet) {
  machine a("soft:2");
  machine b("soft:2");
  a.device(0).map(a.address(0), 2 * MiB);
  b.device(0).map(b.address(0), 2 * MiB);
  host_buffer from_a(a.set(), 4096);
  host_buffer from_b(b.set(), 4096);
  a.stream(0).fill(a.address(0), 1, 4096);
  b.stream(0).fill(b.address(0), 2, 4096);
  a.finish(a.stream(0).copy(from_a.data(), a.address(0), 4096));
  b.finish(b.stream(0).copy(from_b.data(), b.address(0), 4096));
  EXPECT_EQ(from_a.as<char>()[0], 1);
  EXPECT_EQ(from_b.as<char>()[0], 2);
}

// A running device-test-owner.
class owner {
 public:
  explicit owner(const char* specification) {
    std::array<int, 2> pipe{};
    if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(pipe[1], STDOUT_FILENO);
      ::execl(DEVICE_TEST_OWNER, DEVICE_TEST_OWNER, specification, DEVICE_TEST_KERNELS, nullptr);
      ::_exit(127);
    }
    ::close(pipe[1]);
    std::string line;
    char c = 0;
    while (::read(pipe[0], &c, 1) == 1 && c != '\n') line += c;
    ::close(pipe[0]);
    std::istringstream words(line);
    for (pid_t pid = 0; words >> pid;) devices_.push_back(pid);
  }
  owner(const owner&) = delete;
  owner& operator=(const owner&) = delete;
  ~owner() { end(SIGKILL); }

  void end(int signal) {
    if (pid_ <= 0) return;
    ::kill(pid_, signal);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] const std::vector<pid_t>& devices() const { return devices_; }

 private:
  pid_t pid_ = 0;
  std::vector<pid_t> devices_;
};

class killed_owner : public testing::TestWithParam<int> {};

TEST_P(killed_owner, leaves_nothing) {
  const std::vector<std::string> no_names;
  owner program("soft:3");
  ASSERT_EQ(program.devices().size(), 3U);
  // A file in /dev/shm would remain after its process is killed, so the processes must not have such files at any time.
  EXPECT_EQ(shared_memory_names_of(program.pid()), no_names);
  for (const pid_t pid : program.devices()) {
    EXPECT_TRUE(runs(pid));
    EXPECT_EQ(shared_memory_names_of(pid), no_names);
  }
  program.end(GetParam());
  // The process that adopts the devices' processes may reap them at any time.
  for (const pid_t pid : program.devices()) EXPECT_TRUE(eventually([&] { return !runs(pid); }, 20s)) << pid;
}

TEST(killed_owner_of_stopped_devices, leaves_nothing) {
  owner program("soft:2");
  ASSERT_EQ(program.devices().size(), 2U);
  for (const pid_t pid : program.devices()) ::kill(pid, SIGSTOP);
  program.end(SIGKILL);
  for (const pid_t pid : program.devices()) EXPECT_TRUE(eventually([&] { return !runs(pid); }, 20s)) << pid;
}

INSTANTIATE_TEST_SUITE_P(signals, killed_owner, testing::Values(SIGKILL, SIGTERM, SIGSEGV, SIGINT),
                         [](const auto& info) { return std::string("SIG") + ::sigabbrev_np(info.param); });

TEST(two_owners, at_once) {
  owner first("soft:2");
  owner second("soft:2");
  ASSERT_EQ(first.devices().size(), 2U);
  ASSERT_EQ(second.devices().size(), 2U);
  first.end(SIGKILL);
  for (const pid_t pid : first.devices()) EXPECT_TRUE(eventually([&] { return !runs(pid); }, 2s));
  for (const pid_t pid : second.devices()) EXPECT_TRUE(runs(pid));
}

}  // namespace
}  // namespace device_test
