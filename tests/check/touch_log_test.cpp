#include "runtime/check/touch_log.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <search.h>

#include <array>

namespace hpe::check {
namespace {

struct touching {
  touch_log* log;
  std::uintptr_t begin;
};

// Called by libc; its caller is the instruction of libc that touches the next ten bytes.
int touch(const void* key, const void* /*element*/) {
  auto* const next = const_cast<touching*>(static_cast<const touching*>(key));
  next->log->add(next->begin, next->begin + 10, true, __builtin_return_address(0));
  next->begin += 10;
  return 1;  // go on
}

// A function of libc that touches memory [begin, begin + 10 n).
#define TOUCH_BY_LIBC(log, begin, n)                                      \
  do {                                                                    \
    constexpr std::array<char, n> elements{};                             \
    touching key{&(log), begin};                                          \
    std::size_t count = elements.size();                                  \
    EXPECT_EQ(::lfind(&key, elements.data(), &count, 1, touch), nullptr); \
  } while (false)

class touch_logs : public ::testing::Test {
 protected:
  touch_logs() {
    trace::call_stack::prepare();
    log.prepare();
  }
  touch_log log;
};

TEST_F(touch_logs, JoinTheTouchesOfOneCallOfLibc) {
  TOUCH_BY_LIBC(log, 1000, 5);
  const auto made = log.take();
  ASSERT_EQ(made.size(), 1U);
  EXPECT_EQ(made[0].begin, 1000U);
  EXPECT_EQ(made[0].end, 1050U);
  EXPECT_TRUE(made[0].writes);
}

TEST_F(touch_logs, KeepTheTouchesOfTwoCallsOfLibcApart) {
  TOUCH_BY_LIBC(log, 1000, 2);
  TOUCH_BY_LIBC(log, 1010, 3);
  const auto made = log.take();
  ASSERT_EQ(made.size(), 2U);
  EXPECT_EQ(made[0].begin, 1000U);
  EXPECT_EQ(made[0].end, 1020U);
  EXPECT_EQ(made[1].begin, 1010U);
  EXPECT_EQ(made[1].end, 1040U);
}

TEST_F(touch_logs, JoinTheTouchesOfALineThatRunsOften) {
  for (std::uintptr_t n = 0; n < 3; ++n) TOUCH_BY_LIBC(log, 1000 + 10 * n, 1);
  EXPECT_EQ(log.take().size(), 1U);
}

TEST_F(touch_logs, DoNotJoinTouchesBeforeAndAfterATake) {
  for (std::uintptr_t n = 0; n < 2; ++n) {
    TOUCH_BY_LIBC(log, 1000 + 10 * n, 1);
    EXPECT_EQ(log.take().size(), 1U);
  }
}

TEST_F(touch_logs, LeaveOutTheTouchesOfALibrary) {
  const auto function_of = [](const char* library, const char* name) {
    return ::dlsym(::dlopen(library, RTLD_LAZY), name);
  };
  log.leave_out(function_of("libm.so.6", "cos"));
  TOUCH_BY_LIBC(log, 1000, 3);
  EXPECT_EQ(log.take().size(), 1U);
  log.leave_out(function_of("libc.so.6", "lfind"));
  TOUCH_BY_LIBC(log, 1000, 3);
  EXPECT_EQ(log.take().size(), 0U);
}

}  // namespace
}  // namespace hpe::check
