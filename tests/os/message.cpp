#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "hpe/error.hpp"
#include "runtime/os/socket_message.h"
#include "runtime/os/virtual_memory.h"

namespace {

using hpe::os::file_descriptor;
using hpe::os::receive_message;
using hpe::os::send_message;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

struct Message : testing::Test {
  file_descriptor one, other;
  std::array<char, 16> room{};
  std::vector<file_descriptor> files;

  Message() {
    std::array<int, 2> pair{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) != 0) std::abort();
    one = file_descriptor(pair[0]);
    other = file_descriptor(pair[1]);
  }

  std::string receive() {
    const std::size_t got = receive_message(other.get(), std::as_writable_bytes(std::span(room)), files);
    return {room.data(), got};
  }
};

TEST_F(Message, BringsItsBytesAndItsFiles) {
  const file_descriptor first = hpe::os::create_memory_file("first", 100);
  const file_descriptor second = hpe::os::create_memory_file("second", 200);
  const std::array<int, 2> sent{first.get(), second.get()};
  EXPECT_TRUE(send_message(one.get(), bytes_of("two files"), sent));
  EXPECT_TRUE(send_message(one.get(), bytes_of("none")));
  EXPECT_EQ(receive(), "two files");
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(::lseek(files[0].get(), 0, SEEK_END), 100);
  EXPECT_EQ(::lseek(files[1].get(), 0, SEEK_END), 200);
  for (const file_descriptor& f : files) EXPECT_NE(::fcntl(f.get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_EQ(receive(), "none");
  EXPECT_TRUE(files.empty()) << "the files of the previous message must not remain";
}

TEST_F(Message, MayCarryMoreThanBytesAndFiles) {
  const int on = 1;
  ASSERT_EQ(::setsockopt(other.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on), 0);
  const file_descriptor file = hpe::os::create_memory_file("file", 100);
  const int sent = file.get();
  EXPECT_TRUE(send_message(one.get(), bytes_of("who?"), std::span(&sent, 1)));
  EXPECT_EQ(receive(), "who?");
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(::lseek(files[0].get(), 0, SEEK_END), 100);
}

TEST_F(Message, OneThatIsTooLongIsDropped) {
  const int file = one.get();
  EXPECT_TRUE(send_message(one.get(), bytes_of("seventeen letters"), std::span(&file, 1)));
  EXPECT_EQ(receive(), "");
  EXPECT_TRUE(files.empty());
  EXPECT_TRUE(send_message(one.get(), bytes_of("sixteen  letters")));
  EXPECT_EQ(receive(), "sixteen  letters");
}

TEST_F(Message, ToNobodyIsNotSentAndFromNobodyIsNone) {
  other.reset();
  EXPECT_FALSE(send_message(one.get(), bytes_of("anybody?")));
  std::swap(one, other);
  EXPECT_EQ(receive(), "");
}

TEST_F(Message, ToWhoDoesNotReadIsNotSent) {
  ASSERT_EQ(::fcntl(one.get(), F_SETFL, O_NONBLOCK), 0);
  int sent = 0;
  while (send_message(one.get(), bytes_of("again"))) ASSERT_LT(++sent, 100000);
  EXPECT_GT(sent, 0);
  EXPECT_EQ(receive(), "again");
}

TEST_F(Message, WhichCannotBeSentIsAnError) {
  const file_descriptor no_socket = hpe::os::create_memory_file("no-socket", 1);
  try {
    send_message(no_socket.get(), bytes_of("hello"));
    FAIL() << "no exception";
  } catch (const hpe::error& e) {
    EXPECT_EQ(e.status(), HPE_ERROR_SYSTEM);
  }
}

TEST_F(Message, IsWaitedForThoughSignalsArrive) {
  struct sigaction action {};
  struct sigaction before {};
  static std::atomic<int> handled;
  handled = 0;
  action.sa_handler = [](int) { ++handled; };  // without SA_RESTART
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  const pthread_t receiver = ::pthread_self();
  std::thread sender([&] {
    while (handled < 3) {
      ::pthread_kill(receiver, SIGUSR1);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(send_message(one.get(), bytes_of("at last")));
  });
  EXPECT_EQ(receive(), "at last");
  sender.join();
  ::sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
