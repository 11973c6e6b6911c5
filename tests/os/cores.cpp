#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <thread>

#include "runtime/os/thread.h"

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

cpu_set_t cores_of_this_thread() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  EXPECT_EQ(::sched_getaffinity(0, sizeof cores, &cores), 0);
  return cores;
}

TEST(cores, are_divided_into_shares) {
  const unsigned all = hpe::os::usable_cores();
  for (unsigned parts = 2; parts <= all; ++parts) {
    cpu_set_t taken;
    CPU_ZERO(&taken);
    for (unsigned part = 0; part < parts; ++part) {
      std::thread([&] {
        hpe::os::keep_to_share(part, parts);
        const cpu_set_t mine = cores_of_this_thread();
        EXPECT_GE(static_cast<unsigned>(CPU_COUNT(&mine)), all / parts);
        EXPECT_LE(static_cast<unsigned>(CPU_COUNT(&mine)), (all + parts - 1) / parts);
        cpu_set_t twice;
        CPU_AND(&twice, &taken, &mine);
        EXPECT_EQ(CPU_COUNT(&twice), 0) << part << " of " << parts;
        CPU_OR(&taken, &taken, &mine);
        EXPECT_EQ(::sched_getscheduler(0), SCHED_BATCH);
      }).join();
    }
    EXPECT_EQ(static_cast<unsigned>(CPU_COUNT(&taken)), all) << parts;
  }
}

TEST(cores, are_not_divided_among_more_than_there_are) {
  std::thread([] {
    const cpu_set_t before = cores_of_this_thread();
    hpe::os::keep_to_share(0, hpe::os::usable_cores() + 1);
    const cpu_set_t after = cores_of_this_thread();
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
  }).join();
}

// EXPECT_EXIT runs its statement in a new process of this program, which may use only the cores of this thread.
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
