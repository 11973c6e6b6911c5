// Calls with vectors of buffers that are in several kinds of memory at once.

#undef _FORTIFY_SOURCE

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <climits>
#include <cstring>
#include <functional>

#include "tests/io/support.h"

namespace {

using namespace io_test;

// A vector with one buffer in the middle of each kind of memory, and an empty buffer.
struct scattered {
  std::vector<std::unique_ptr<memory>> parts;
  std::vector<iovec> vector;
  std::size_t bytes = 0;

  explicit scattered(std::size_t each) {
    for (const place where : all_places) {
      parts.push_back(std::make_unique<memory>(where, each + 300));
      vector.push_back({parts.back()->data() + 100, each});
      bytes += each;
    }
    vector.push_back({parts[0]->data(), 0});
  }
  [[nodiscard]] int count() const { return static_cast<int>(vector.size()); }
  [[nodiscard]] content all() const {
    content result;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const content part = parts[i]->part(100, vector[i].iov_len);
      result.insert(result.end(), part.begin(), part.end());
    }
    return result;
  }
  // Records in the models that the first bytes of the parts are now `what`.
  void expect(const content& what) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < parts.size() && at < what.size(); ++i) {
      const std::size_t n = std::min(vector[i].iov_len, what.size() - at);
      parts[i]->expect(100, {what.begin() + std::ptrdiff_t(at), what.begin() + std::ptrdiff_t(at + n)});
      at += n;
    }
  }
  void renew() {
    for (auto& m : parts) m->renew();
  }
  void check(const char* when) const {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      SCOPED_TRACE(name_of(all_places[i]));
      parts[i]->check(when);
    }
  }
};

struct call {
  const char* name;
  std::function<ssize_t(int, const iovec*, int)> run;
};

const std::vector<call> reads = {
    {"readv", ::readv},
    {"preadv", [](int f, const iovec* v, int n) { return ::preadv(f, v, n, 0); }},
    {"preadv64", [](int f, const iovec* v, int n) { return ::preadv64(f, v, n, 0); }},
    {"preadv2", [](int f, const iovec* v, int n) { return ::preadv2(f, v, n, 0, 0); }},
    {"preadv2 at the position", [](int f, const iovec* v, int n) { return ::preadv2(f, v, n, -1, 0); }},
    {"preadv64v2", [](int f, const iovec* v, int n) { return ::preadv64v2(f, v, n, 0, RWF_HIPRI); }},
    {"syscall(SYS_readv)", [](int f, const iovec* v, int n) { return ::syscall(SYS_readv, f, v, n); }},
    {"syscall(SYS_preadv)", [](int f, const iovec* v, int n) { return ::syscall(SYS_preadv, f, v, n, 0, 0); }},
};

const std::vector<call> writes = {
    {"writev", ::writev},
    {"pwritev", [](int f, const iovec* v, int n) { return ::pwritev(f, v, n, 0); }},
    {"pwritev64", [](int f, const iovec* v, int n) { return ::pwritev64(f, v, n, 0); }},
    {"pwritev2", [](int f, const iovec* v, int n) { return ::pwritev2(f, v, n, 0, RWF_DSYNC); }},
    {"pwritev2 at the position", [](int f, const iovec* v, int n) { return ::pwritev2(f, v, n, -1, 0); }},
    {"pwritev64v2", [](int f, const iovec* v, int n) { return ::pwritev64v2(f, v, n, 0, 0); }},
    {"syscall(SYS_writev)", [](int f, const iovec* v, int n) { return ::syscall(SYS_writev, f, v, n); }},
};

TEST(vectors, EveryReadScatters) {
  for (const std::size_t each : {1UL, 1000UL, 70001UL}) {
    scattered s(each);
    const file f;
    const content source = random_content(s.bytes + 10);
    f.fill(source);
    for (const call& c : reads) {
      SCOPED_TRACE(c.name);
      s.renew();
      ::lseek(f.get(), 0, SEEK_SET);
      ASSERT_EQ(c.run(f.get(), s.vector.data(), s.count()), ssize_t(s.bytes)) << std::strerror(errno);
      s.expect({source.begin(), source.end() - 10});
      s.check(c.name);
    }
  }
}

// A vector with one entry is treated like a single buffer.
TEST(vectors, EveryCallAtAnOffset) {
  constexpr off_t at = 4321;
  const std::vector<call> reads_there = {
      {"preadv", [](int f, const iovec* v, int n) { return ::preadv(f, v, n, at); }},
      {"preadv64", [](int f, const iovec* v, int n) { return ::preadv64(f, v, n, at); }},
      {"preadv2", [](int f, const iovec* v, int n) { return ::preadv2(f, v, n, at, 0); }},
      {"preadv64v2", [](int f, const iovec* v, int n) { return ::preadv64v2(f, v, n, at, RWF_HIPRI); }},
      {"syscall(SYS_preadv)", [](int f, const iovec* v, int n) { return ::syscall(SYS_preadv, f, v, n, at, 0); }},
  };
  const std::vector<call> writes_there = {
      {"pwritev", [](int f, const iovec* v, int n) { return ::pwritev(f, v, n, at); }},
      {"pwritev64", [](int f, const iovec* v, int n) { return ::pwritev64(f, v, n, at); }},
      {"pwritev2", [](int f, const iovec* v, int n) { return ::pwritev2(f, v, n, at, 0); }},
      {"pwritev64v2", [](int f, const iovec* v, int n) { return ::pwritev64v2(f, v, n, at, RWF_DSYNC); }},
      {"syscall(SYS_pwritev)", [](int f, const iovec* v, int n) { return ::syscall(SYS_pwritev, f, v, n, at, 0); }},
  };
  constexpr std::size_t bytes = 3000;
  memory first(place::device, bytes);
  memory second(place::device, bytes);
  for (const int entries : {1, 2}) {
    const iovec parts[] = {{first.data(), bytes}, {second.data(), bytes}};
    const ssize_t all = entries * ssize_t{bytes};
    for (const call& c : reads_there) {
      SCOPED_TRACE(c.name);
      const file f;
      const content source = random_content(at + 3 * bytes);
      f.fill(source);
      ASSERT_EQ(c.run(f.get(), parts, entries), all) << std::strerror(errno);
      const content read(source.begin() + at, source.begin() + at + all);
      first.expect(0, {read.begin(), read.begin() + bytes});
      if (entries == 2) second.expect(0, {read.begin() + bytes, read.end()});
      first.check(c.name);
      second.check(c.name);
    }
    for (const call& c : writes_there) {
      SCOPED_TRACE(c.name);
      const file f;
      ASSERT_EQ(c.run(f.get(), parts, entries), all) << std::strerror(errno);
      content written(at);
      for (const memory* m : {&first, &second}) {
        const content part = m->part(0, bytes);
        written.insert(written.end(), part.begin(), part.end());
      }
      written.resize(at + std::size_t(all));
      ASSERT_TRUE(f.all() == written);
    }
  }
}

TEST(vectors, AShortReadEndsInTheMiddleOfOne) {
  scattered s(1000);
  const file f;
  const content source = random_content(2500);
  f.fill(source);
  ASSERT_EQ(::readv(f.get(), s.vector.data(), s.count()), 2500);
  s.expect(source);
  s.check("after a short read");
}

TEST(vectors, EveryWriteGathers) {
  for (const std::size_t each : {1UL, 1000UL, 70001UL}) {
    scattered s(each);
    for (const call& c : writes) {
      SCOPED_TRACE(c.name);
      const file f;
      s.renew();
      ASSERT_EQ(c.run(f.get(), s.vector.data(), s.count()), ssize_t(s.bytes)) << std::strerror(errno);
      ASSERT_TRUE(f.all() == s.all());
    }
    s.check("after the writes");
  }
}

TEST(vectors, ABufferThatLeavesItsAllocationEndsTheCallThere) {
  memory first(place::device, 1000);
  memory second(place::small, 1000);
  memory third(place::ordinary, 1000);
  const iovec v[] = {{first.data(), 1000}, {second.data() + 500, 800}, {third.data(), 1000}};
  const file f;
  const content source = random_content(3000);
  f.fill(source);
  ASSERT_EQ(::readv(f.get(), v, 3), 1500);
  first.expect(0, {source.begin(), source.begin() + 1000});
  second.expect(500, {source.begin() + 1000, source.begin() + 1500});
  for (const memory* m : {&first, &second, &third}) m->check("after it");
  f.fill({});
  ASSERT_EQ(::writev(f.get(), v, 3), 1500);
}

TEST(vectors, WrongOnesAreRefusedAsEver) {
  memory m(place::device, 1000);
  const std::vector<iovec> many(IOV_MAX + 1, iovec{m.data(), 1});
  const file f;
  EXPECT_EQ(::writev(f.get(), many.data(), IOV_MAX + 1), -1);
  EXPECT_EQ(errno, EINVAL);
  ssize_t (*volatile writes)(int, const iovec*, int) = ::writev;  // volatile: hides the function from the compiler
  EXPECT_EQ(writes(f.get(), many.data(), -1), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(writes(f.get(), nullptr, 2), -1);
  EXPECT_EQ(errno, EFAULT);
  ssize_t (*volatile reads_at)(int, const iovec*, int, off_t, int) = ::preadv2;
  ssize_t (*volatile writes_at)(int, const iovec*, int, off_t, int) = ::pwritev2;
  for (auto* const call : {reads_at, writes_at}) {
    EXPECT_EQ(call(f.get(), nullptr, 1, 0, 0), -1);
    EXPECT_EQ(errno, EFAULT);
  }
  EXPECT_EQ(::readv(f.get(), many.data(), 0), 0);
  EXPECT_EQ(::writev(f.get(), many.data(), IOV_MAX), IOV_MAX);
}

TEST(vectors, OneThatLiesInMemoryOfHpeItself) {
  memory m(place::device, 1000);
  const hpe::array<iovec> v(2);
  v[0] = {m.data(), 500};
  v[1] = {m.data() + 500, 500};
  const file f;
  ASSERT_EQ(::writev(f.get(), v.data(), 2), 1000);
  ASSERT_TRUE(f.all() == m.part(0, 1000));
  content plain = random_content(100);
  v[0] = {plain.data(), 100};
  f.fill({});
  ASSERT_EQ(::writev(f.get(), v.data(), 1), 100);
  ASSERT_TRUE(f.all() == plain);
}

TEST(vectors, MemoryOfAnotherProcess) {
  scattered s(3000);
  content far = random_content(s.bytes);
  const iovec there{far.data(), far.size()};
  ASSERT_EQ(::process_vm_readv(::getpid(), s.vector.data(), static_cast<unsigned long>(s.count()), &there, 1, 0),
            ssize_t(s.bytes));
  s.expect(far);
  s.check("after process_vm_readv");
  s.renew();
  ASSERT_EQ(::process_vm_writev(::getpid(), s.vector.data(), static_cast<unsigned long>(s.count()), &there, 1, 0),
            ssize_t(s.bytes));
  ASSERT_TRUE(far == s.all());

  // Makes the calls through syscall(), like libraries that do not know the function.
  const content farther = random_content(s.bytes);
  std::copy(farther.begin(), farther.end(), far.begin());
  ASSERT_EQ(::syscall(SYS_process_vm_readv, ::getpid(), s.vector.data(), s.vector.size(), &there, 1, 0),
            ssize_t(s.bytes));
  s.expect(farther);
  s.check("after syscall(SYS_process_vm_readv)");
  s.renew();
  ASSERT_EQ(::syscall(SYS_process_vm_writev, ::getpid(), s.vector.data(), s.vector.size(), &there, 1, 0),
            ssize_t(s.bytes));
  ASSERT_TRUE(far == s.all());
}

// ---- messages

TEST(messages, ScatterAndGather) {
  for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET}) {
    scattered from(3000);
    scattered to(3000);
    const ends pair = make_sockets(type);
    msghdr message{};
    message.msg_iov = from.vector.data();
    message.msg_iovlen = from.vector.size();
    ASSERT_EQ(::sendmsg(pair.a, &message, 0), ssize_t(from.bytes)) << std::strerror(errno);
    message.msg_iov = to.vector.data();
    char control[64];
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ASSERT_EQ(::recvmsg(pair.b, &message, MSG_WAITALL), ssize_t(to.bytes));
    EXPECT_EQ(message.msg_controllen, 0U);
    EXPECT_EQ(message.msg_iov, to.vector.data());
    to.expect(from.all());
    to.check("after recvmsg");
  }
}

TEST(messages, ATruncatedOneIsToldSo) {
  const ends pair = make_sockets(SOCK_DGRAM);
  const content sent = random_content(2000);
  write_all(pair.a, sent);
  memory m(place::device, 1000);
  iovec v{m.data(), 900};
  msghdr message{};
  message.msg_iov = &v;
  message.msg_iovlen = 1;
  ASSERT_EQ(::recvmsg(pair.b, &message, MSG_TRUNC | MSG_PEEK), 2000);
  EXPECT_NE(message.msg_flags & MSG_TRUNC, 0);
  m.expect(0, {sent.begin(), sent.begin() + 900});
  m.check("after a truncated message");
  ASSERT_EQ(::recv(pair.b, m.data() + 10, 500, MSG_TRUNC), 2000);
  m.expect(10, {sent.begin(), sent.begin() + 500});
  m.check("after another");
}

TEST(messages, DescriptorsTravelWithThem) {
  const ends pair = make_sockets(SOCK_STREAM);
  memory m(place::device, 100);
  iovec v{m.data(), 100};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &v;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  const file f;
  const int sent = f.get();
  std::memcpy(CMSG_DATA(head), &sent, sizeof sent);
  ASSERT_EQ(::sendmsg(pair.a, &message, 0), 100);
  std::memset(control, 0, sizeof control);
  message.msg_controllen = sizeof control;
  ASSERT_EQ(::recvmsg(pair.b, &message, 0), 100);
  int received = -1;
  std::memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof received);
  EXPECT_GE(received, 0);
  EXPECT_EQ(::close(received), 0);
}

// The operating system accepts only a small part of a large vector, so hpe must not copy the rest from the device for
// each call.
TEST(messages, AStreamThatDoesNotBlockStagesAboutWhatItTakes) {
  constexpr std::size_t half = std::size_t{16} << 20;
  const ends pair = make_sockets(SOCK_STREAM);
  const std::vector<std::function<ssize_t(int, iovec*)>> sends = {
      [](int s, iovec* v) {
        const msghdr message{.msg_name = nullptr,
                             .msg_namelen = 0,
                             .msg_iov = v,
                             .msg_iovlen = 2,
                             .msg_control = nullptr,
                             .msg_controllen = 0,
                             .msg_flags = 0};
        return ::sendmsg(s, &message, MSG_DONTWAIT);
      },
      [](int s, iovec* v) {
        ::fcntl(s, F_SETFL, O_NONBLOCK);
        return ::writev(s, v, 2);
      },
  };
  for (const auto& send : sends) {
    const memory a(place::device, half);
    const memory b(place::device, half);
    iovec parts[] = {{a.data(), half}, {b.data(), half}};
    hpeResetStatistics();
    const ssize_t sent = send(pair.a, parts);
    hpeStatistics counts;
    counts.struct_size = sizeof counts;
    ASSERT_EQ(hpeGetStatistics(&counts), HPE_SUCCESS);
    ASSERT_GT(sent, 0);
    EXPECT_LT(counts.bytes_to_host, half / 2);
    EXPECT_TRUE(read_exactly(pair.b, static_cast<std::size_t>(sent)) == a.part(0, static_cast<std::size_t>(sent)));
  }
}

void exchange_several(int (*send)(int, mmsghdr*, unsigned, int),
                      int (*receive)(int, mmsghdr*, unsigned, int, timespec*)) {
  const ends pair = make_sockets(SOCK_DGRAM);
  memory a(place::device, 1000);
  memory b(place::striped, 1000);
  memory c(place::ordinary, 1000);
  iovec v[] = {{a.data(), 300}, {b.data() + 7, 700}, {c.data(), 20}, {a.data() + 500, 100}};
  mmsghdr messages[3] = {};
  messages[0].msg_hdr.msg_iov = &v[0];
  messages[0].msg_hdr.msg_iovlen = 1;
  messages[1].msg_hdr.msg_iov = &v[1];
  messages[1].msg_hdr.msg_iovlen = 2;
  messages[2].msg_hdr.msg_iov = &v[3];
  messages[2].msg_hdr.msg_iovlen = 1;
  ASSERT_EQ(send(pair.a, messages, 3, 0), 3);
  EXPECT_EQ(messages[0].msg_len, 300U);
  EXPECT_EQ(messages[1].msg_len, 720U);
  EXPECT_EQ(messages[2].msg_len, 100U);
  EXPECT_EQ(messages[1].msg_hdr.msg_iov, &v[1]);
  const content first = a.part(0, 300);
  const content second = b.part(7, 700);
  const content third = c.part(0, 20);
  const content fourth = a.part(500, 100);

  a.renew();
  b.renew();
  c.renew();
  v[0].iov_len = 400;
  for (auto& m : messages) m.msg_len = 0;
  timespec soon{1, 0};
  ASSERT_EQ(receive(pair.b, messages, 3, MSG_DONTWAIT, &soon), 3);
  EXPECT_EQ(messages[0].msg_len, 300U);
  EXPECT_EQ(messages[1].msg_len, 720U);
  EXPECT_EQ(messages[1].msg_hdr.msg_iovlen, 2U);
  a.expect(0, first);
  b.expect(7, second);
  c.expect(0, third);
  a.expect(500, fourth);
  a.check("a");
  b.check("b");
  c.check("c");
  EXPECT_EQ(receive(pair.b, messages, 3, MSG_DONTWAIT, nullptr), -1);
  EXPECT_EQ(errno, EAGAIN);
  a.check("after nothing came");
}

TEST(messages, SeveralAtOnce) { exchange_several(::sendmmsg, ::recvmmsg); }

TEST(messages, SeveralAtOnceBySystemCall) {
  exchange_several(
      [](int s, mmsghdr* m, unsigned n, int flags) { return int(::syscall(SYS_sendmmsg, s, m, n, flags)); },
      [](int s, mmsghdr* m, unsigned n, int flags, timespec* t) {
        return int(::syscall(SYS_recvmmsg, s, m, n, flags, t));
      });
}

}  // namespace
