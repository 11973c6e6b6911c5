#include "runtime/base/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using hpe::handler_line;
using hpe::log_level;

// Returns the text that the action writes to standard error.
std::string written_by(const std::function<void()>& action) {
  testing::internal::CaptureStderr();
  action();
  return testing::internal::GetCapturedStderr();
}

TEST(Log, WritesMessagesUpToItsLevel) {
  EXPECT_EQ(written_by([] {
              hpe::log(log_level::warn, "{} blocks", 3);
              hpe::log(log_level::info, "not told by default");
            }),
            "hpe: 3 blocks\n");
  hpe::set_log_level(log_level::silent);
  EXPECT_EQ(written_by([] { hpe::log(log_level::error, "no"); }), "");
  hpe::set_log_level(log_level::debug);
  EXPECT_EQ(written_by([] { hpe::log(log_level::debug, "yes"); }), "hpe: yes\n");
  hpe::set_log_level(log_level::warn);
}

TEST(Log, KeepsErrnoAlsoIfNothingCanBeWritten) {
  const int before = ::dup(STDERR_FILENO);
  for (const bool is_open : {true, false}) {
    testing::internal::CaptureStderr();
    const int captured = ::dup(STDERR_FILENO);
    if (!is_open) ::close(STDERR_FILENO);
    errno = 77;
    hpe::log(log_level::error, "a line");
    const int after_log = std::exchange(errno, 78);
    handler_line().text("another").write();
    const int after_line = errno;
    ::dup2(captured, STDERR_FILENO);
    ::close(captured);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), is_open ? "hpe: a line\nanother\n" : "");
    EXPECT_EQ(after_log, 77);
    EXPECT_EQ(after_line, 78);
  }
  ::dup2(before, STDERR_FILENO);
  ::close(before);
}

TEST(Log, EachLevelIncludesTheLevelsAboveIt) {
  const log_level all[] = {log_level::silent, log_level::error, log_level::warn, log_level::info, log_level::debug};
  for (const log_level chosen : all) {
    hpe::set_log_level(chosen);
    for (const log_level each : all) EXPECT_EQ(hpe::log_enabled(each), each <= chosen);
  }
  hpe::set_log_level(log_level::warn);
}

TEST(Log, LinesOfThreadsDoNotMix) {
  const std::string text = written_by([] {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([] {
        for (int n = 0; n < 200; ++n) hpe::log(log_level::error, "{}", std::string(100, 'x'));
      });
    for (std::thread& t : threads) t.join();
  });
  const std::string line = "hpe: " + std::string(100, 'x') + "\n";
  ASSERT_EQ(text.size(), 800 * line.size());
  for (std::size_t i = 0; i < text.size(); i += line.size()) ASSERT_EQ(text.compare(i, line.size(), line), 0);
}

TEST(HandlerLine, PutsTextAndNumbersTogether) {
  EXPECT_EQ(written_by([] {
              handler_line()
                  .text("at ")
                  .hex(0x200000000abc)
                  .text(", ")
                  .decimal(18446744073709551615u)
                  .text(" ")
                  .hex(0)
                  .text(" ")
                  .decimal(0)
                  .text(" ")
                  .hex(UINT64_MAX)
                  .write();
            }),
            "at 0x200000000abc, 18446744073709551615 0x0 0 0xffffffffffffffff\n");
}

TEST(HandlerLine, CutsALineThatDoesNotFit) {
  const std::string text = written_by([] {
    handler_line line;
    for (int i = 0; i < 100; ++i) line.text("0123456789");
    line.write();
  });
  EXPECT_GT(text.size(), 400u);
  EXPECT_LE(text.size(), 480u);
  EXPECT_EQ(text.back(), '\n');
  EXPECT_EQ(text.substr(0, 20), "01234567890123456789");
}

TEST(HandlerLine, StartsAnewAndKeepsErrno) {
  errno = ERANGE;
  EXPECT_EQ(written_by([] {
              handler_line line;
              line.text("one").write();
              line.text("two").write();
            }),
            "one\ntwo\n");
  EXPECT_EQ(errno, ERANGE);
}

TEST(HandlerLine, SurvivesAClosedStandardError) {
  EXPECT_EXIT(
      {
        ::close(STDERR_FILENO);
        handler_line().text("nobody reads this").write();
        hpe::log(log_level::error, "nor this");
        ::_exit(7);
      },
      testing::ExitedWithCode(7), "");
}

}  // namespace
