#include "runtime/os/cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <thread>

namespace {

TEST(cores, are_those_that_the_process_was_given) {
  cpu_set_t allowed;
  ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
  EXPECT_EQ(hpe::os::usable_cores(), static_cast<unsigned>(CPU_COUNT(&allowed)));
}

TEST(cores, stay_those_when_a_thread_binds_itself) {
  const unsigned before = hpe::os::usable_cores();
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(hpe::os::usable_cores(), before);
  }).join();
}

// The exit test starts the program again, and that gets this thread's cores.
TEST(cores, are_fewer_where_the_process_gets_fewer) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EXIT(std::_Exit(static_cast<int>(hpe::os::usable_cores())), testing::ExitedWithCode(1), "");
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
