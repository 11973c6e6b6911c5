// Calls with hpe memory that hpe does not intercept, and hpe's messages about these calls; calls in child processes;
// and signals that interrupt calls.

#undef _FORTIFY_SOURCE

#include <aio.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>

#include "tests/io/support.h"

extern char** environ;

namespace {

using namespace io_test;

bool told(const std::string& log, const std::string& what) { return log.find(what) != std::string::npos; }

TEST(escapes, ASystemCallThatHasNoFunctionIsExplained) {
  const memory m(place::device, 4096);
  hpe::synchronize();
  testing::internal::CaptureStderr();
  EXPECT_EQ(::syscall(SYS_getcwd, m.data(), 4096), -1);
  EXPECT_EQ(errno, EFAULT);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(told(log, "syscall: the Linux kernel refused")) << log;
  EXPECT_TRUE(told(log, "docs/files.md")) << log;
}

TEST(escapes, ASystemCallOnOrdinaryMemoryIsPassedOn) {
  char here[4096];
  EXPECT_GT(::syscall(SYS_getcwd, here, sizeof here), 0);
  EXPECT_EQ(::syscall(SYS_getpid), ::getpid());
  EXPECT_EQ(::syscall(9999), -1);
  EXPECT_EQ(errno, ENOSYS);
}

TEST(escapes, VmspliceIsExplained) {
  const memory m(place::device, 4096);
  hpe::synchronize();
  const ends pipe = make_pipe();
  const iovec v{m.data(), 4096};
  testing::internal::CaptureStderr();
  EXPECT_EQ(::vmsplice(pipe.b, &v, 1, 0), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_TRUE(told(testing::internal::GetCapturedStderr(), "vmsplice: the Linux kernel refused"));
}

TEST(escapes, PosixAsynchronousReadsAreExplained) {
  const memory m(place::device, 4096);
  hpe::synchronize();
  const file f;
  f.fill(random_content(100));
  aiocb request{};
  request.aio_fildes = f.get();
  request.aio_buf = m.data();
  request.aio_nbytes = 100;
  testing::internal::CaptureStderr();
  ASSERT_EQ(::aio_read(&request), 0);
  while (::aio_error(&request) == EINPROGRESS) ::usleep(1000);
  EXPECT_EQ(::aio_error(&request), EFAULT);
  EXPECT_EQ(::aio_return(&request), -1);
  EXPECT_TRUE(told(testing::internal::GetCapturedStderr(), "aio_read: the Linux kernel refused 100 bytes"));
  m.check("after it");
}

TEST(escapes, ALostDeviceIsAnErrorOfInputAndOutput) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto lose = [] {
    ::setenv("HPE_DEVICES", "soft:2", 1);
    const memory m(place::device, 100000);
    hpe::synchronize();
    // The last argument of the device's process is the number of this process.
    std::FILE* list = ::popen(("pgrep -f 'softd 0 .* " + std::to_string(::getpid()) + "$'").c_str(), "r");
    int process = 0;
    if (std::fscanf(list, "%d", &process) != 1) ::_exit(2);
    ::pclose(list);
    ::kill(process, SIGKILL);
    while (hpe::device_info(0).lost == 0) ::usleep(1000);
    const file f;
    f.fill(random_content(1000));
    if (::write(f.get(), m.data(), 1000) != -1 || errno != EIO) ::_exit(3);
    if (::read(f.get(), m.data(), 1000) != -1 || errno != EIO) ::_exit(4);
    ::_exit(0);
  };
  EXPECT_EXIT(lose(), testing::ExitedWithCode(0), "is lost");
}

// ---- children

int status_of(pid_t child) {
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

TEST(children, DoNotInheritMemoryAndAreTold) {
  const memory m(place::device, 4096);
  hpe::synchronize();
  const file f;
  f.fill(random_content(100));
  const ends told_by = make_pipe();
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(told_by.b, STDERR_FILENO);
    ::_exit(::read(f.get(), m.data(), 100) == -1 && errno == EFAULT ? 0 : 1);
  }
  EXPECT_EQ(status_of(child), 0);
  char log[500] = {};
  EXPECT_GT(::read(told_by.a, log, sizeof log - 1), 0);
  EXPECT_TRUE(told(log, "a child made by fork does not inherit hpe memory")) << log;
  m.check("in the parent");
}

TEST(children, WorkOnOrdinaryMemory) {
  const memory m(place::device, 4096);
  const file f;
  f.fill(random_content(100));
  const pid_t child = ::fork();
  if (child == 0) {
    char x[100];
    ::_exit(::pread(f.get(), x, 100, 0) == 100 && ::pwrite(f.get(), x, 100, 50) == 100 ? 0 : 1);
  }
  EXPECT_EQ(status_of(child), 0);
}

TEST(children, ReceiveWhatAParentWrites) {
  const memory m(place::device, 100'000);
  const file f;
  const ends pipe = make_pipe();
  ::setenv("IN", std::to_string(pipe.a).c_str(), 1);
  ::setenv("OUT", std::to_string(f.get()).c_str(), 1);
  char shell[] = "sh";
  char flag[] = "-c";
  char command[] = "exec cat < /dev/fd/$IN > /dev/fd/$OUT";
  char* words[] = {shell, flag, command, nullptr};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addclose(&actions, pipe.b);
  pid_t child = 0;
  ASSERT_EQ(::posix_spawnp(&child, "sh", &actions, nullptr, words, environ), 0);
  ::posix_spawn_file_actions_destroy(&actions);
  ASSERT_EQ(::write(pipe.b, m.data(), 100'000), 100'000);
  const_cast<ends&>(pipe).close_b();
  EXPECT_EQ(status_of(child), 0);
  EXPECT_TRUE(f.all() == m.part(0, 100'000));
}

// ---- signals

ends between;
std::atomic<int> handled{0};

void read_and_write(int) {
  const int before = errno;
  char x[16] = "in a handler";
  char y[16] = {};
  if (::write(between.b, x, sizeof x) != sizeof x || ::read(between.a, y, sizeof y) != sizeof y ||
      std::strcmp(x, y) != 0)
    ::_exit(9);
  ++handled;
  errno = before;
}

TEST(signals, HandlersReadAndWriteOrdinaryMemoryInTheMiddleOfCallsOnHpes) {
  new (&between) ends(make_pipe());
  const content source = random_content(9 << 20);
  const file f;
  f.fill(source);
  const memory m(place::device, 9 << 20);
  struct sigaction action {};
  action.sa_handler = read_and_write;
  action.sa_flags = SA_RESTART;
  struct sigaction old {};
  ::sigaction(SIGALRM, &action, &old);
  const itimerval often{{0, 500}, {0, 500}};
  const itimerval never{};
  ::setitimer(ITIMER_REAL, &often, nullptr);
  handled = 0;
  for (int i = 0; i < 200 || handled < 20; ++i) {
    const std::size_t n = i % 10 == 0 ? 9 << 20 : 10'000;
    ASSERT_EQ(::pread(f.get(), m.data(), n, 0), ssize_t(n)) << std::strerror(errno);
    ASSERT_EQ(::pwrite(f.get(), m.data(), n, 0), ssize_t(n)) << std::strerror(errno);
  }
  ::setitimer(ITIMER_REAL, &never, nullptr);
  ::sigaction(SIGALRM, &old, nullptr);
  EXPECT_TRUE(f.all() == source);
}

}  // namespace
