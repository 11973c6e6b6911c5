// Claims and turns of processes that share a device, without the device (device_share.h).

#include "runtime/node/device_share.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <list>
#include <string>

#include "hpe/error.hpp"

namespace node_test {
namespace {

using hpe::node::device_share;
using namespace std::chrono_literals;

constexpr std::uint64_t total = 100;

/// A child that executes calls of its own device_share.
class other_process {
 public:
  enum class call : std::uint64_t { take, give, free, enter, ask, leave };

  explicit other_process(const std::string& group) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) throw std::bad_alloc();
    child_ = ::fork();
    if (child_ == 0) {
      ::close(ends[0]);
      serve(group, ends[1]);
    }
    ::close(ends[1]);
    socket_ = ends[0];
    EXPECT_EQ(answer(), 1U) << "the child has not joined";
  }
  ~other_process() {
    ::shutdown(socket_, SHUT_RDWR);  // later children have copies of the socket
    ::close(socket_);
    ::waitpid(child_, nullptr, 0);
  }
  other_process(const other_process&) = delete;
  other_process& operator=(const other_process&) = delete;

  std::uint64_t tell(call what, std::uint64_t bytes = 0, std::uint64_t enough = 0) {
    const order all{what, bytes, enough};
    EXPECT_EQ(::write(socket_, &all, sizeof all), static_cast<ssize_t>(sizeof all));
    return answer();
  }

 private:
  struct order {
    call what;
    std::uint64_t bytes, enough;
  };

  std::uint64_t answer() const {
    std::uint64_t result = ~0U;
    EXPECT_EQ(::read(socket_, &result, sizeof result), static_cast<ssize_t>(sizeof result));
    return result;
  }

  [[noreturn]] static void serve(const std::string& group, int socket) {
    device_share share(group, "d", total, 1s);
    std::uint64_t result = 1;
    device_share::turn turn = 0;
    for (order next{}; ::write(socket, &result, sizeof result) > 0 && ::read(socket, &next, sizeof next) > 0;) {
      switch (next.what) {
        case call::take: result = share.take(next.bytes) ? 1 : 0; break;
        case call::give: share.give(next.bytes); break;
        case call::free: result = share.free(); break;
        case call::enter: turn = share.enter(); break;
        case call::ask: result = static_cast<std::uint64_t>(share.ask(turn, next.bytes, next.enough)); break;
        case call::leave: share.leave(turn); break;
      }
    }
    ::_exit(0);
  }

  pid_t child_ = -1;
  int socket_ = -1;
};

using call = other_process::call;

class DeviceShare : public testing::Test {
 protected:
  ~DeviceShare() override { std::filesystem::remove(file(group_)); }
  static std::string file(const std::string& group) {
    return "/dev/shm/hpe-share-1-" + std::to_string(::geteuid()) + "-" + group + "-d";
  }
  const std::string group_ = "unit." + std::to_string(::getpid());
};

TEST_F(DeviceShare, ClaimsTogetherAreAtMostTheMemory) {
  device_share mine(group_, "d", total, 1s);
  EXPECT_FALSE(mine.others());
  EXPECT_EQ(mine.free(), total);
  EXPECT_FALSE(mine.take(total + 1));
  {
    other_process other(group_);
    EXPECT_TRUE(mine.others());
    EXPECT_EQ(other.tell(call::take, 60), 1U);
    EXPECT_EQ(mine.free(), 40U);
    EXPECT_FALSE(mine.take(41));
    EXPECT_TRUE(mine.take(40));
    EXPECT_EQ(mine.free(), 0U);
    EXPECT_TRUE(mine.take(0));
    EXPECT_FALSE(mine.take(1));
    EXPECT_EQ(other.tell(call::take, 1), 0U);
    mine.give(10);
    EXPECT_EQ(other.tell(call::free), 10U);
    EXPECT_EQ(other.tell(call::take, 10), 1U);
  }
  // The other process has ended; the next call that lacks memory notices it.
  EXPECT_EQ(mine.free(), 0U);
  EXPECT_TRUE(mine.take(70));
  EXPECT_EQ(mine.free(), 0U);
  EXPECT_FALSE(mine.others());
}

TEST_F(DeviceShare, MemoryIsReservedForTheOwnerOfATurnUntilItLeaves) {
  device_share mine(group_, "d", total, 1s);
  other_process other(group_);
  ASSERT_TRUE(mine.take(60));
  other.tell(call::enter);
  EXPECT_EQ(other.tell(call::ask, 30, 30), static_cast<std::uint64_t>(device_share::reply::memory));
  EXPECT_EQ(mine.free(), 10U);
  EXPECT_EQ(other.tell(call::free), 40U) << "the reserved memory is free for its owner";
  EXPECT_EQ(other.tell(call::take, 20), 1U);
  EXPECT_EQ(mine.free(), 10U) << "10 of the reserved bytes remain";
  other.tell(call::leave);
  EXPECT_EQ(mine.free(), 20U);
}

TEST_F(DeviceShare, ANameHasAtMost64Characters) {
  const std::string longest = group_ + std::string(64 - group_.size(), 'a');
  { const device_share mine(longest, "d", total, 1s); }
  EXPECT_TRUE(std::filesystem::remove(file(longest)));
  EXPECT_THROW(device_share(longest + "a", "d", total, 1s), hpe::error);
}

TEST_F(DeviceShare, AtMost64ProcessesShareADevice) {
  std::list<other_process> others;
  while (others.size() < 63) others.emplace_back(group_);
  {
    const device_share mine(group_, "d", total, 1s);
    EXPECT_TRUE(mine.others());
    EXPECT_EQ(others.back().tell(call::take, 1), 1U);
    EXPECT_EQ(mine.free(), total - 1);
  }
  others.emplace_back(group_);
  try {
    const device_share mine(group_, "d", total, 1s);
    FAIL() << "a 65th process shares the device";
  } catch (const hpe::error& e) {
    EXPECT_NE(std::string(e.what()).find("64 processes share this device already"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace node_test
