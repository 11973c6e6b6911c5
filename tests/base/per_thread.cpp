#include "runtime/base/per_thread.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>

namespace hpe {
namespace {

struct counted {
  counted() { ++made; }
  counted(const counted&) = delete;
  counted& operator=(const counted&) = delete;
  ~counted() { ++destroyed; }
  std::string text = "a text that is too long for the buffer inside the string object";
  static inline int made = 0, destroyed = 0;
};

counted* made_late = nullptr;

// Each thread constructs it before the per-thread object, so its destructor runs after the per-thread object's
// destructor.
struct late_user {
  ~late_user() {
    if (used) made_late = &per_thread<counted>::get();
  }
  bool used = false;
};

TEST(PerThread, AThreadHasOneObjectUntilItEnds) {
  const int made = counted::made, destroyed = counted::destroyed;
  const counted* other = nullptr;
  std::thread([&] {
    other = &per_thread<counted>::get();
    EXPECT_EQ(&per_thread<counted>::get(), other);
    EXPECT_NE(other, nullptr);
  }).join();
  EXPECT_EQ(counted::made, made + 1);
  EXPECT_EQ(counted::destroyed, destroyed + 1);
}

TEST(PerThread, DestructorsOfTheThreadMayUseAnother) {
  const int made = counted::made, destroyed = counted::destroyed;
  std::thread([] {
    static thread_local late_user user;
    user.used = true;
    per_thread<counted>::get().text += ", used";
  }).join();
  EXPECT_EQ(counted::made, made + 2);
  EXPECT_EQ(counted::destroyed, destroyed + 1);
  ASSERT_NE(made_late, nullptr);
  EXPECT_TRUE(made_late->text.ends_with("object"));
}

void end_as_text_is_kept() {
  const std::string& text = per_thread<counted>::get().text;
  ::_exit(text.ends_with("object, kept") && counted::destroyed == 0 ? 7 : 1);
}

TEST(PerThread, ExitHandlersUseTheMainThreadsObject) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        std::atexit(end_as_text_is_kept);
        per_thread<counted>::get().text += ", kept";
        std::exit(2);
      },
      testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace hpe
