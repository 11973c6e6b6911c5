// Message queues and random numbers.

#undef _FORTIFY_SOURCE

#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "tests/io/support.h"

namespace {

using namespace io_test;

class queues : public testing::TestWithParam<place> {};

TEST_P(queues, PosixMessages) {
  const std::string name = "/hpe-test-" + std::to_string(::getpid());
  mq_attr attributes{};
  attributes.mq_maxmsg = 4;
  attributes.mq_msgsize = 2000;
  const mqd_t queue = ::mq_open(name.c_str(), O_CREAT | O_RDWR | O_EXCL, 0600, &attributes);
  if (queue == mqd_t(-1)) GTEST_SKIP() << "no POSIX message queues here: " << std::strerror(errno);
  ::mq_unlink(name.c_str());
  memory from(GetParam(), 3000);
  memory to(GetParam(), 3000);
  const auto* source = reinterpret_cast<const char*>(from.data());
  auto* target = reinterpret_cast<char*>(to.data());
  const timespec past{1, 0};
  unsigned priority = 0;
  ASSERT_EQ(::mq_send(queue, source + 1, 1999, 3), 0);
  ASSERT_EQ(::mq_receive(queue, target + 2, 2000, &priority), 1999);
  EXPECT_EQ(priority, 3U);
  to.expect(2, from.part(1, 1999));
  to.check("after mq_receive");
  EXPECT_EQ(::mq_timedreceive(queue, target, 2000, &priority, &past), -1);
  EXPECT_EQ(errno, ETIMEDOUT);
  ASSERT_EQ(::mq_timedsend(queue, source + 5, 10, 0, &past), 0);
  ASSERT_EQ(::mq_timedreceive(queue, target + 5, 2000, nullptr, &past), 10);
  to.expect(5, from.part(5, 10));
  to.check("after mq_timedreceive");
  ASSERT_EQ(::syscall(SYS_mq_timedsend, queue, source + 7, 20, 0, nullptr), 0) << std::strerror(errno);
  ASSERT_EQ(::syscall(SYS_mq_timedreceive, queue, target + 9, 2000, nullptr, nullptr), 20) << std::strerror(errno);
  to.expect(9, from.part(7, 20));
  to.check("after syscall(SYS_mq_timedreceive)");
  EXPECT_EQ(::mq_send(queue, source, 2500, 0), -1);
  EXPECT_EQ(errno, EMSGSIZE);
  ::mq_close(queue);
}

TEST_P(queues, SystemVMessages) {
  const int queue = ::msgget(IPC_PRIVATE, 0600);
  if (queue < 0) GTEST_SKIP() << "no message queues here: " << std::strerror(errno);
  memory from(GetParam(), 3000);
  memory to(GetParam(), 3000);
  const long type = 42;
  std::memcpy(from.data() + 8, &type, sizeof type);
  content head(sizeof type);
  std::memcpy(head.data(), &type, sizeof type);
  from.expect(8, head);
  ASSERT_EQ(::msgsnd(queue, from.data() + 8, 1000, 0), 0) << std::strerror(errno);
  ASSERT_EQ(::msgrcv(queue, to.data() + 16, 2000, 42, 0), 1000) << std::strerror(errno);
  to.expect(16, from.part(8, 1008));
  to.check("after msgrcv");
  ASSERT_EQ(::syscall(SYS_msgsnd, queue, from.data() + 8, 500, 0), 0) << std::strerror(errno);
  ASSERT_EQ(::syscall(SYS_msgrcv, queue, to.data() + 32, 2000, 42, 0), 500) << std::strerror(errno);
  to.expect(32, from.part(8, 508));
  to.check("after syscall(SYS_msgrcv)");
  EXPECT_EQ(::msgrcv(queue, to.data(), 2000, 42, IPC_NOWAIT), -1);
  EXPECT_EQ(errno, ENOMSG);
  ::msgctl(queue, IPC_RMID, nullptr);
}

TEST_P(queues, RandomNumbers) {
  memory m(GetParam(), 1000);
  const content before = m.part(0, 1000);
  const auto now = [&] { return content(m.data(), m.data() + 1000); };
  ASSERT_EQ(::getrandom(m.data() + 100, 200, 0), 200);
  content after = now();
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + 100, after.begin()));
  EXPECT_TRUE(std::equal(before.begin() + 300, before.end(), after.begin() + 300));
  EXPECT_FALSE(std::equal(before.begin() + 100, before.begin() + 300, after.begin() + 100));
  ASSERT_EQ(::getentropy(m.data() + 300, 200), 0);
  EXPECT_FALSE(std::equal(before.begin() + 300, before.begin() + 500, now().begin() + 300));
  EXPECT_EQ(::getentropy(m.data(), 300), -1);
  EXPECT_EQ(errno, EIO);
  ASSERT_EQ(::syscall(SYS_getrandom, m.data() + 500, 200, 0), 200);
  EXPECT_FALSE(std::equal(before.begin() + 500, before.begin() + 700, now().begin() + 500));
}

INSTANTIATE_TEST_SUITE_P(Places, queues, testing::ValuesIn(all_places), name_of_parameter);

}  // namespace
