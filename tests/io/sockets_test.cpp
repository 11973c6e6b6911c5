// Sockets and pipes, and their errors.

#undef _FORTIFY_SOURCE

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <functional>
#include <thread>

#include "tests/io/support.h"

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): names of libc
extern "C" {
ssize_t __send(int, const void*, std::size_t, int);
ssize_t __recv_chk(int, void*, std::size_t, std::size_t, int);
ssize_t __recvfrom_chk(int, void*, std::size_t, std::size_t, int, sockaddr*, socklen_t*);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace {

using namespace io_test;

class streams : public testing::TestWithParam<place> {};

TEST_P(streams, EverySendReachesEveryReceive) {
  using send_call = std::function<ssize_t(int, const void*, std::size_t)>;
  using receive_call = std::function<ssize_t(int, void*, std::size_t)>;
  const std::vector<send_call> sends = {
      [](int s, const void* p, std::size_t n) { return ::send(s, p, n, 0); },
      [](int s, const void* p, std::size_t n) { return ::__send(s, p, n, 0); },
      [](int s, const void* p, std::size_t n) { return ::sendto(s, p, n, 0, nullptr, 0); },
      [](int s, const void* p, std::size_t n) { return ::write(s, p, n); },
  };
  const std::vector<receive_call> receives = {
      [](int s, void* p, std::size_t n) { return ::recv(s, p, n, MSG_WAITALL); },
      [](int s, void* p, std::size_t n) { return ::__recv_chk(s, p, n, n, MSG_WAITALL); },
      [](int s, void* p, std::size_t n) { return ::recvfrom(s, p, n, MSG_WAITALL, nullptr, nullptr); },
      [](int s, void* p, std::size_t n) { return ::__recvfrom_chk(s, p, n, n, MSG_WAITALL, nullptr, nullptr); },
  };
  memory from(GetParam(), room_for(GetParam()));
  memory to(GetParam(), room_for(GetParam()));
  for (std::size_t i = 0; i < std::max(sends.size(), receives.size()); ++i) {
    const auto& send = sends[i % sends.size()];
    const auto& receive = receives[i % receives.size()];
    const ends pair = i % 2 == 0 ? make_tcp() : make_sockets(SOCK_STREAM);
    for (const std::size_t n : sizes_for(GetParam())) {
      from.renew();
      to.renew();
      std::thread sender([&] { ASSERT_EQ(send(pair.a, from.data() + 3, n), ssize_t(n)); });
      errno = 4711;
      EXPECT_EQ(receive(pair.b, to.data() + 5, n), ssize_t(n));
      EXPECT_EQ(errno, 4711);
      sender.join();
      to.expect(5, from.part(3, n));
      to.check(std::to_string(i).c_str());
    }
  }
}

TEST_P(streams, APipeBringsWhatIsThere) {
  memory m(GetParam(), 5000);
  const ends pipe = make_pipe();
  const content some = random_content(1000);
  write_all(pipe.b, some);
  ASSERT_EQ(::read(pipe.a, m.data() + 1, 4000), 1000);
  m.expect(1, some);
  m.check("after a pipe");
  ASSERT_EQ(::write(pipe.b, m.data(), 5000), 5000);
  ASSERT_TRUE(read_exactly(pipe.a, 5000) == m.part(0, 5000));
}

TEST_P(streams, WhatDoesNotBlockSaysAgain) {
  memory m(GetParam(), room_for(GetParam()));
  const ends pipe = make_pipe(O_NONBLOCK);
  EXPECT_EQ(::read(pipe.a, m.data(), 100), -1);
  EXPECT_EQ(errno, EAGAIN);
  m.check("after nothing came");
  std::size_t sent = 0;
  content expected;
  for (;;) {
    const std::size_t n = std::min<std::size_t>(m.size(), 100000);
    const ssize_t count = ::write(pipe.b, m.data(), n);
    if (count < 0) {
      EXPECT_EQ(errno, EAGAIN);
      break;
    }
    const content part = m.part(0, static_cast<std::size_t>(count));
    expected.insert(expected.end(), part.begin(), part.end());
    sent += static_cast<std::size_t>(count);
  }
  ASSERT_TRUE(read_exactly(pipe.a, sent) == expected);

  const ends sockets = make_sockets(SOCK_DGRAM);
  EXPECT_EQ(::recv(sockets.a, m.data(), 100, MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, EAGAIN);
}

std::atomic<int> signals{0};

void count_signal(int) { ++signals; }

TEST_P(streams, AClosedPipe) {
  memory m(GetParam(), 5000);
  {
    ends pipe = make_pipe();
    pipe.close_b();
    EXPECT_EQ(::read(pipe.a, m.data(), 100), 0);
    m.check("at the end of a pipe");
  }
  ends pipe = make_pipe();
  pipe.close_a();
  signals = 0;
  const auto before = ::signal(SIGPIPE, count_signal);
  EXPECT_EQ(::write(pipe.b, m.data(), 100), -1);
  EXPECT_EQ(errno, EPIPE);
  EXPECT_EQ(signals, 1);
  ends sockets = make_sockets(SOCK_STREAM);
  sockets.close_a();
  EXPECT_EQ(::send(sockets.b, m.data(), 100, MSG_NOSIGNAL), -1);
  EXPECT_EQ(errno, EPIPE);
  EXPECT_EQ(signals, 1);
  iovec parts[] = {{m.data(), 100}, {m.data() + 200, 100}};
  for (const std::size_t entries : {1, 2}) {
    mmsghdr message{};
    message.msg_hdr.msg_iov = parts;
    message.msg_hdr.msg_iovlen = entries;
    EXPECT_EQ(::sendmsg(sockets.b, &message.msg_hdr, MSG_NOSIGNAL), -1);
    EXPECT_EQ(errno, EPIPE);
    EXPECT_EQ(::sendmmsg(sockets.b, &message, 1, MSG_NOSIGNAL), -1);
    EXPECT_EQ(errno, EPIPE);
  }
  EXPECT_EQ(signals, 1);
  ::signal(SIGPIPE, before);
  m.check("after a closed pipe");
}

TEST_P(streams, ASignalInterruptsACallThatWaits) {
  memory m(GetParam(), 5000);
  const ends pipe = make_pipe();
  signals = 0;
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = count_signal;  // without SA_RESTART
  ::sigaction(SIGUSR1, &action, &before);
  std::atomic<bool> done{false};
  const pthread_t reader = ::pthread_self();
  std::thread interrupter([&] {
    while (!done) {
      ::pthread_kill(reader, SIGUSR1);
      ::usleep(10000);
    }
  });
  EXPECT_EQ(::read(pipe.a, m.data(), 100), -1);
  EXPECT_EQ(errno, EINTR);
  done = true;
  interrupter.join();
  EXPECT_GE(signals, 1);
  ::sigaction(SIGUSR1, &before, nullptr);
  m.check("after an interrupted read");
}

TEST_P(streams, DatagramsKeepTheirAddresses) {
  const int a = ::socket(AF_INET, SOCK_DGRAM, 0);
  const int b = ::socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof to;
  ASSERT_EQ(::bind(b, reinterpret_cast<sockaddr*>(&to), size), 0);
  ::getsockname(b, reinterpret_cast<sockaddr*>(&to), &size);
  memory from(GetParam(), 4000);
  memory into(GetParam(), 4000);
  ASSERT_EQ(::sendto(a, from.data(), 1400, 0, reinterpret_cast<sockaddr*>(&to), size), 1400);
  sockaddr_in sender{};
  socklen_t sender_size = sizeof sender;
  ASSERT_EQ(::recvfrom(b, into.data(), 4000, 0, reinterpret_cast<sockaddr*>(&sender), &sender_size), 1400);
  EXPECT_EQ(sender_size, sizeof sender);
  EXPECT_EQ(sender.sin_addr.s_addr, ::htonl(INADDR_LOOPBACK));
  into.expect(0, from.part(0, 1400));
  into.check("after a datagram");
  // A buffer that extends past its allocation is refused as a whole, because hpe would otherwise send a different,
  // shorter datagram.
  if (GetParam() == place::device) {
    EXPECT_EQ(::sendto(a, from.data() + 3900, 200, 0, reinterpret_cast<sockaddr*>(&to), size), -1);
    EXPECT_EQ(errno, EFAULT);
    ASSERT_EQ(::sendto(a, from.data(), 50, 0, reinterpret_cast<sockaddr*>(&to), size), 50);
    sender = {};
    sender_size = sizeof sender;
    ASSERT_EQ(::recvfrom(b, into.data() + 3900, 300, 0, reinterpret_cast<sockaddr*>(&sender), &sender_size), 50);
    EXPECT_EQ(sender_size, sizeof sender);
    EXPECT_EQ(sender.sin_addr.s_addr, ::htonl(INADDR_LOOPBACK));
    into.expect(3900, from.part(0, 50));
    into.check("after a datagram into a buffer that extends past its allocation");
  }
  ::close(a);
  ::close(b);
}

INSTANTIATE_TEST_SUITE_P(Places, streams, testing::ValuesIn(all_places), name_of_parameter);

// hpe stages only a part of a large buffer for a non-blocking stream. Otherwise each call would copy the whole buffer
// to the host.
TEST(streams_that_do_not_block, AreNotGivenMoreThanTheyMayTake) {
  memory m(place::device, 64 << 20);
  const ends pair = make_sockets(SOCK_STREAM);
  hpe::synchronize();
  hpeResetStatistics();
  const ssize_t sent = ::send(pair.a, m.data(), m.size(), MSG_DONTWAIT);
  ASSERT_GT(sent, 0);
  hpeStatistics after{};
  hpeGetStatistics(&after);
  EXPECT_LE(after.bytes_to_host, 8U << 20);
  ASSERT_TRUE(read_exactly(pair.b, std::size_t(sent)) == m.part(0, std::size_t(sent)));
}

TEST(streams_that_block, SendAllOfIt) {
  memory m(place::device, 20 << 20);
  const ends pair = make_sockets(SOCK_STREAM);
  std::thread sender([&] { EXPECT_EQ(::send(pair.a, m.data(), m.size(), 0), ssize_t(m.size())); });
  EXPECT_TRUE(read_exactly(pair.b, m.size()) == m.part(0, m.size()));
  sender.join();
}

TEST(zerocopy, IsRefusedAndTold) {
  const ends pair = make_tcp();
  memory m(place::device, 1000);
  testing::internal::CaptureStderr();
  EXPECT_EQ(::send(pair.a, m.data(), 1000, MSG_ZEROCOPY), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("MSG_ZEROCOPY"), std::string::npos);
}

TEST(cancelling, AThreadThatReadsEndsAndTheMemoryStays) {
  memory m(place::device, 5000);
  for (int i = 0; i < 20; ++i) {
    const ends pipe = make_pipe();
    std::atomic<bool> running{false};
    struct arguments {
      memory* m;
      int file;
      std::atomic<bool>* running;
    } given{&m, pipe.a, &running};
    pthread_t reader{};
    ASSERT_EQ(::pthread_create(
                  &reader, nullptr,
                  [](void* p) -> void* {
                    const auto* a = static_cast<arguments*>(p);
                    *a->running = true;
                    (void)!::read(a->file, a->m->data(), 100);
                    return nullptr;
                  },
                  &given),
              0);
    while (!running) std::this_thread::yield();
    ::pthread_cancel(reader);
    void* result = nullptr;
    ASSERT_EQ(::pthread_join(reader, &result), 0);
    EXPECT_EQ(result, PTHREAD_CANCELED);
  }
  m.check("after cancelled reads");
}

}  // namespace
