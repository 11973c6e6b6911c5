// What hpe tells the watcher of touches (hpeWatchTouches): which bytes a call of libc uses. A process has one watcher,
// so these tests are a program of their own.

#undef _FORTIFY_SOURCE

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "hpe/check.h"
#include "hpe/hpe.hpp"

namespace {

constexpr std::size_t mebi = std::size_t{1} << 20, room = 9 * mebi;

using events = std::vector<std::string>;

// The bytes that calls use: o is ordinary memory, h is hpe memory. Touches of other memory are not recorded.
struct watched {
  char* o = static_cast<char*>(::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  hpe::array<char> memory{room};
  char* h = memory.data();
  bool records = false;
  events told;
  std::function<bool()> open_pages;  // for refused()

  void tell(const char* what, const void* begin, std::size_t bytes) {
    const auto* const at = static_cast<const char*>(begin);
    const bool is_ordinary = at >= o && at < o + room, is_hpe = at >= h && at < h + room;
    if (records && (is_ordinary || is_hpe))
      told.push_back(std::string(what) + (is_ordinary ? " o+" : " h+") + std::to_string(at - (is_ordinary ? o : h)) +
                     " " + std::to_string(bytes));
  }
};

watched* the_watched = nullptr;

// Tests with a watcher that opens nothing.
class Touches : public testing::Test {
 protected:
  Touches() {
    static const bool begun = [] {
      the_watched = new watched;
      hpeTouchWatcher all{};
      all.faulted = [](const hpeTouch*) { return HPE_TOUCH_NOT_WATCHED; };
      all.stepped = [] {};
      all.protects = [](void*, std::size_t, int, bool*) { return false; };
      all.called = [](const void* begin, std::size_t bytes, bool writes) {
        the_watched->tell(writes ? "writes" : "reads", begin, bytes);
      };
      all.refused = [] { return the_watched->open_pages && the_watched->open_pages(); };
      all.opens = [](const void* begin, std::size_t bytes) {
        the_watched->tell("opens", begin, bytes);
        return false;
      };
      EXPECT_EQ(hpeWatchTouches(&all, nullptr), HPE_SUCCESS);
      EXPECT_EQ(hpeWatchTouches(&all, nullptr), HPE_ERROR_INVALID_ARGUMENT) << "a process has one watcher";
      return true;
    }();
    static_cast<void>(begun);
    std::memset(o(), 'o', 4096);
    std::memset(h(), 'h', 4096);
  }

  static char* o() { return the_watched->o; }
  static char* h() { return the_watched->h; }

  /// Returns what hpe tells during a call.
  template <class Call>
  static events during(ssize_t expected, const Call& call) {
    the_watched->told.clear();
    the_watched->records = true;
    const auto result = static_cast<ssize_t>(call());
    the_watched->records = false;
    EXPECT_EQ(result, expected) << std::strerror(errno);
    return std::exchange(the_watched->told, {});
  }

  /// Returns a file with `bytes` bytes, which the caller closes.
  static int file_of(std::size_t bytes) {
    char name[] = "/tmp/hpe-test-touches-XXXXXX";
    const int result = ::mkstemp(name);
    ::unlink(name);
    EXPECT_EQ(::ftruncate(result, static_cast<off_t>(bytes)), 0);
    return result;
  }
};

struct one_buffer {
  const char* name;
  std::function<ssize_t(int file, char* p, std::size_t n)> run;
};

TEST_F(Touches, OfCallsThatReadFilesAreTheBytesThatArrive) {
  const std::vector<one_buffer> all{
      {"read", [](int f, char* p, std::size_t n) { return ::read(f, p, n); }},
      {"pread", [](int f, char* p, std::size_t n) { return ::pread(f, p, n, 0); }},
      {"readv",
       [](int f, char* p, std::size_t n) {
         const iovec v{p, n};
         return ::readv(f, &v, 1);
       }},
      {"preadv",
       [](int f, char* p, std::size_t n) {
         const iovec v{p, n};
         return ::preadv(f, &v, 1, 0);
       }},
      {"preadv2",
       [](int f, char* p, std::size_t n) {
         const iovec v{p, n};
         return ::preadv2(f, &v, 1, 0, 0);
       }},
      {"preadv2 at the position",
       [](int f, char* p, std::size_t n) {
         const iovec v{p, n};
         return ::preadv2(f, &v, 1, -1, 0);
       }},
  };
  for (const one_buffer& each : all) {
    SCOPED_TRACE(each.name);
    const int file = file_of(60);
    EXPECT_EQ(during(60, [&] { return each.run(file, o() + 3, 100); }), (events{"opens o+3 100", "writes o+3 60"}));
    ::lseek(file, 0, SEEK_SET);
    EXPECT_EQ(during(60, [&] { return each.run(file, h() + 3, 100); }), events{"writes h+3 60"});
    ::close(file);
    EXPECT_EQ(during(-1, [&] { return each.run(file, o() + 3, 100); }), events{"opens o+3 100"});
  }
}

TEST_F(Touches, OfCallsThatWriteFilesAreTheBytesThatTheyPass) {
  const std::vector<one_buffer> all{
      {"write", [](int f, char* p, std::size_t n) { return ::write(f, p, n); }},
      {"pwrite", [](int f, char* p, std::size_t n) { return ::pwrite(f, p, n, 0); }},
      {"writev",
       [](int f, char* p, std::size_t n) {
         const iovec v{p, n};
         return ::writev(f, &v, 1);
       }},
      {"pwritev",
       [](int f, char* p, std::size_t n) {
         const iovec v{p, n};
         return ::pwritev(f, &v, 1, 0);
       }},
      {"pwritev2",
       [](int f, char* p, std::size_t n) {
         const iovec v{p, n};
         return ::pwritev2(f, &v, 1, 0, 0);
       }},
      {"pwritev2 at the position",
       [](int f, char* p, std::size_t n) {
         const iovec v{p, n};
         return ::pwritev2(f, &v, 1, -1, 0);
       }},
  };
  for (const one_buffer& each : all) {
    SCOPED_TRACE(each.name);
    const int file = file_of(0);
    EXPECT_EQ(during(100, [&] { return each.run(file, o() + 3, 100); }), (events{"opens o+3 100", "reads o+3 100"}));
    EXPECT_EQ(during(100, [&] { return each.run(file, h() + 3, 100); }), events{"reads h+3 100"});
    ::close(file);
  }
}

TEST_F(Touches, OfVectorsAreThoseOfTheirBuffers) {
  const int file = file_of(60);
  const auto read = [&](const std::vector<iovec>& v) {
    ::lseek(file, 0, SEEK_SET);
    return ::readv(file, v.data(), static_cast<int>(v.size()));
  };
  EXPECT_EQ(during(60,
                   [&] {
                     return read({{o(), 50}, {o() + 200, 50}, {o() + 400, 9}});
                   }),
            (events{"opens o+0 50", "opens o+200 50", "opens o+400 9", "writes o+0 50", "writes o+200 10"}));
  EXPECT_EQ(during(60,
                   [&] {
                     return read({{h(), 50}, {h() + 200, 50}});
                   }),
            (events{"writes h+0 50", "writes h+200 10"}));
  EXPECT_EQ(during(60, [&] { return read({{o(), 50}, {h() + 200, 50}}); }), events{"writes h+200 10"});
  const iovec both[] = {{o() + 1, 50}, {o() + 200, 10}}, of_hpe[] = {{h() + 1, 50}, {h() + 200, 10}};
  const auto writes = [&](const iovec* v) { return ::pwritev(file, v, 2, 0); };
  EXPECT_EQ(during(60, [&] { return writes(both); }),
            (events{"opens o+1 50", "opens o+200 10", "reads o+1 50", "reads o+200 10"}));
  EXPECT_EQ(during(60, [&] { return writes(of_hpe); }), (events{"reads h+1 50", "reads h+200 10"}));
  const iovec far{o() + 1000, 60};
  EXPECT_EQ(during(60, [&] { return ::process_vm_readv(::getpid(), both, 2, &far, 1, 0); }),
            (events{"opens o+1 50", "opens o+200 10", "writes o+1 50", "writes o+200 10"}));
  EXPECT_EQ(during(60, [&] { return ::process_vm_writev(::getpid(), both, 2, &far, 1, 0); }),
            (events{"opens o+1 50", "opens o+200 10", "reads o+1 50", "reads o+200 10"}));
  EXPECT_EQ(during(-1, [&] { return ::readv(-1, both, 2); }), (events{"opens o+1 50", "opens o+200 10"}));
  const std::vector<iovec> most(IOV_MAX, iovec{o(), 1}), many(IOV_MAX + 1, iovec{o(), 1});
  EXPECT_EQ(during(IOV_MAX, [&] { return ::pwritev(file, most.data(), IOV_MAX, 0); }).size(), 2U * IOV_MAX);
  EXPECT_EQ(during(-1, [&] { return ::pwritev(file, many.data(), IOV_MAX + 1, 0); }), events{});
  ::close(file);
}

TEST_F(Touches, OfSocketsAreTheBytesOfTheMessages) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM, 0, ends.data()), 0);
  const std::vector<one_buffer> sends{
      {"send", [](int s, char* p, std::size_t n) { return ::send(s, p, n, 0); }},
      {"sendto", [](int s, char* p, std::size_t n) { return ::sendto(s, p, n, 0, nullptr, 0); }},
      {"sendmsg", [](int s, char* p, std::size_t n) {
         iovec v{p, n};
         msghdr m{};
         m.msg_iov = &v;
         m.msg_iovlen = 1;
         return ::sendmsg(s, &m, 0);
       }}};
  const std::vector<one_buffer> receives{
      {"recv", [](int s, char* p, std::size_t n) { return ::recv(s, p, n, 0); }},
      {"recvfrom", [](int s, char* p, std::size_t n) { return ::recvfrom(s, p, n, 0, nullptr, nullptr); }},
      {"recvmsg", [](int s, char* p, std::size_t n) {
         iovec v{p, n};
         msghdr m{};
         m.msg_iov = &v;
         m.msg_iovlen = 1;
         return ::recvmsg(s, &m, 0);
       }}};
  for (std::size_t i = 0; i < sends.size(); ++i) {
    SCOPED_TRACE(sends[i].name);
    EXPECT_EQ(during(60, [&] { return sends[i].run(ends[0], o() + 5, 60); }), (events{"opens o+5 60", "reads o+5 60"}));
    EXPECT_EQ(during(60, [&] { return receives[i].run(ends[1], o() + 7, 90); }),
              (events{"opens o+7 90", "writes o+7 60"}));
    EXPECT_EQ(during(60, [&] { return sends[i].run(ends[0], h() + 5, 60); }), events{"reads h+5 60"});
    EXPECT_EQ(during(60, [&] { return receives[i].run(ends[1], h() + 7, 90); }), events{"writes h+7 60"});
  }
  std::array<iovec, 2> buffers{{{h() + 1, 20}, {h() + 50, 30}}};
  std::array<mmsghdr, 2> messages{};
  for (std::size_t i = 0; i < 2; ++i) {
    messages[i].msg_hdr.msg_iov = &buffers[i];
    messages[i].msg_hdr.msg_iovlen = 1;
  }
  EXPECT_EQ(during(2, [&] { return ::sendmmsg(ends[0], messages.data(), 2, 0); }),
            (events{"reads h+1 20", "reads h+50 30"}));
  buffers[0].iov_len = 40;
  EXPECT_EQ(during(2, [&] { return ::recvmmsg(ends[1], messages.data(), 2, 0, nullptr); }),
            (events{"writes h+1 20", "writes h+50 30"}));
  for (const int each : ends) ::close(each);
}

TEST_F(Touches, OfStreamsAreTheirItems) {
  std::FILE* const stream = ::fdopen(file_of(250), "r+");
  EXPECT_EQ(during(2, [&] { return std::fread(o() + 3, 100, 5, stream); }),
            (events{"opens o+3 500", "writes o+3 200"}));
  std::rewind(stream);
  EXPECT_EQ(during(2, [&] { return std::fread(h() + 3, 100, 5, stream); }), events{"writes h+3 250"});
  std::rewind(stream);
  EXPECT_EQ(during(1, [&] { return ::fread_unlocked(o() + 3, 100, 1, stream); }),
            (events{"opens o+3 100", "writes o+3 100"}));
  EXPECT_EQ(during(1, [&] { return ::fread_unlocked(h() + 3, 100, 1, stream); }), events{"writes h+3 100"});
  std::rewind(stream);
  EXPECT_EQ(during(4, [&] { return std::fwrite(o() + 3, 10, 4, stream); }), (events{"opens o+3 40", "reads o+3 40"}));
  EXPECT_EQ(during(4, [&] { return std::fwrite(h() + 3, 10, 4, stream); }), events{"reads h+3 40"});
  EXPECT_EQ(during(4, [&] { return ::fwrite_unlocked(o() + 3, 10, 4, stream); }),
            (events{"opens o+3 40", "reads o+3 40"}));
  EXPECT_EQ(during(4, [&] { return ::fwrite_unlocked(h() + 3, 10, 4, stream); }), events{"reads h+3 40"});
  std::memset(h(), 'h', 20);
  h()[20] = '\0';
  EXPECT_EQ(during(1, [&] { return std::fputs(h() + 3, stream); }), events{"reads h+3 17"});
  EXPECT_EQ(during(1, [&] { return ::fputs_unlocked(h() + 3, stream); }), events{"reads h+3 17"});
  std::fclose(stream);
}

TEST_F(Touches, OfQueuesAndRandomNumbers) {
  EXPECT_EQ(during(100, [&] { return ::getrandom(o() + 3, 100, 0); }), (events{"opens o+3 100", "writes o+3 100"}));
  EXPECT_EQ(during(100, [&] { return ::getrandom(h() + 3, 100, 0); }), events{"writes h+3 100"});
  EXPECT_EQ(during(0, [&] { return ::getentropy(o() + 3, 100); }), events{"opens o+3 100"});
  EXPECT_EQ(during(0, [&] { return ::getentropy(h() + 3, 100); }), events{"writes h+3 100"});
  const int queue = ::msgget(IPC_PRIVATE, 0600);
  if (queue < 0) GTEST_SKIP() << "no message queues here: " << std::strerror(errno);
  const long type = 42;
  for (char* const each : {o(), h()}) std::memcpy(each, &type, sizeof type);
  EXPECT_EQ(during(0, [&] { return ::msgsnd(queue, o(), 40, 0); }), events{"opens o+0 40"});
  EXPECT_EQ(during(0, [&] { return ::msgsnd(queue, h(), 40, 0); }), events{"reads h+0 48"});
  EXPECT_EQ(during(40, [&] { return ::msgrcv(queue, o() + 8, 100, 42, 0); }),
            (events{"opens o+8 100", "writes o+8 40"}));
  EXPECT_EQ(during(40, [&] { return ::msgrcv(queue, h() + 8, 100, 42, 0); }), events{"writes h+8 48"});
  ::msgctl(queue, IPC_RMID, nullptr);
}

TEST_F(Touches, OfLargeFilesAreToldInChunks) {
  const int file = file_of(9 * mebi - 5);
  const events chunks{"writes h+0 4194304", "writes h+4194304 4194304", "writes h+8388608 1048571"};
  EXPECT_EQ(during(9 * mebi - 5, [&] { return ::read(file, h(), room); }), chunks);
  EXPECT_EQ(during(9 * mebi - 5, [&] { return ::pread(file, h(), room, 0); }), chunks);
  EXPECT_EQ(during(room, [&] { return ::pwrite(file, h(), room, 0); }), events{"reads h+0 9437184"});
  ::lseek(file, 0, SEEK_SET);
  std::FILE* const stream = ::fdopen(file, "r+");
  EXPECT_EQ(during(room, [&] { return std::fread(h(), 1, room, stream); }),
            (events{chunks[0], chunks[1], "writes h+8388608 1048576"}));
  EXPECT_EQ(during(room - 8, [&] { return std::fwrite(h() + 8, 1, room - 8, stream); }), events{"reads h+8 9437176"});
  std::fclose(stream);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// The sanitizers intercept memcpy and similar functions, so hpe's functions are not called.
constexpr bool own_memory_functions = false;
#else
constexpr bool own_memory_functions = true;
#endif

// Volatile, so that the compiler calls the functions of the library.
void* (*volatile copies)(void*, const void*, std::size_t) = ::memcpy;
void* (*volatile moves)(void*, const void*, std::size_t) = ::memmove;
void* (*volatile sets)(void*, int, std::size_t) = ::memset;
int (*volatile compares)(const void*, const void*, std::size_t) = ::memcmp;

TEST_F(Touches, OfLargeCopiesThatDevicesMake) {
  if (!own_memory_functions) GTEST_SKIP() << "the sanitizer's memcpy is called";
  ASSERT_EQ(hpeMemset(h(), 7, room), HPE_SUCCESS);
  hpe::synchronize();
  const auto told = [](const auto& call) {
    errno = 4711;
    const events result = during(0, [&] {
      call();
      return 0;
    });
    EXPECT_EQ(errno, 4711);
    return result;
  };
  const events both{"reads h+1 1048576", "writes o+2 1048576"};
  EXPECT_EQ(told([] { copies(o() + 2, h() + 1, mebi); }), both);
  EXPECT_EQ(o()[mebi + 1], 7);
  EXPECT_EQ(told([] { moves(o() + 2, h() + 1, mebi); }), both);
  EXPECT_EQ(told([] { copies(o() + 2, h() + 1, mebi - 1); }), events{}) << "page faults fetch less";
  EXPECT_EQ(told([] { EXPECT_EQ(compares(h() + 1, o() + 2, mebi), 0); }),
            (events{"reads h+1 1048576", "reads o+2 1048576"}));
  EXPECT_EQ(told([] { EXPECT_EQ(compares(h() + 1, o() + 2, mebi - 1), 0); }), events{});
  EXPECT_EQ(told([] { copies(o() + 2, o() + 4 * mebi, mebi); }), events{}) << "libc copies ordinary memory";
  EXPECT_EQ(told([] { EXPECT_EQ(compares(o(), o(), mebi), 0); }), events{});
  EXPECT_EQ(told([] { sets(o(), 1, mebi); }), events{});
  ASSERT_EQ(hpeMemset(h(), 8, room), HPE_SUCCESS);
  EXPECT_EQ(told([] { sets(h() + 3, 9, mebi); }), events{"writes h+3 1048576"});
  EXPECT_EQ(told([] { copies(h() + 5, o() + 2, mebi); }), (events{"reads o+2 1048576", "writes h+5 1048576"}));
  EXPECT_EQ(std::pair(h()[5], h()[mebi + 5]), std::pair(o()[2], char{8}));
}

TEST_F(Touches, ACallThatTheWatcherCausesToFailIsRepeated) {
  auto* const page = static_cast<char*>(::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  int asked = 0;
  bool opens = true;
  the_watched->open_pages = [&] {
    ++asked;
    if (opens) ::mprotect(page, 4096, PROT_READ | PROT_WRITE);
    return opens;
  };
  const int file = file_of(100);
  EXPECT_EQ(::pread(file, page, 100, 0), 100);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(::pwrite(file, page, 100, 0), 100);
  char* volatile const nowhere = nullptr;
  EXPECT_EQ(::pread(file, nowhere, 100, 0), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(asked, 2) << "the call is repeated once";
  ::mprotect(page, 4096, PROT_NONE);
  opens = false;
  EXPECT_EQ(::pwrite(file, page, 100, 0), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(::read(-1, page, 100), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(asked, 3) << "the memory was not the reason";
  the_watched->open_pages = nullptr;
  ::close(file);
  ::munmap(page, 4096);
}

}  // namespace
