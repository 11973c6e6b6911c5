// read, write and their families on regular files: every function, every kind of memory, sizes from 0 bytes to many
// blocks.

#undef _FORTIFY_SOURCE

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>
#include <functional>

#include "tests/io/support.h"

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): names of libc
extern "C" {
ssize_t __read(int, void*, std::size_t);
ssize_t __write(int, const void*, std::size_t);
ssize_t __pread64(int, void*, std::size_t, off_t);
ssize_t __pwrite64(int, const void*, std::size_t, off_t);
ssize_t __read_chk(int, void*, std::size_t, std::size_t);
ssize_t __pread_chk(int, void*, std::size_t, off_t, std::size_t);
ssize_t __pread64_chk(int, void*, std::size_t, off_t, std::size_t);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace {

using namespace io_test;

constexpr int untouched = 4711;

// A call in the form (file, memory, bytes, offset). For calls that use the file position, the position is first set to
// the offset.
struct call {
  const char* name;
  bool moves;
  std::function<ssize_t(int, void*, std::size_t, off_t)> run;
};

const std::vector<call>& reads() {
  static const std::vector<call> all = {
      {"read", true, [](int f, void* p, std::size_t n, off_t) { return ::read(f, p, n); }},
      {"__read", true, [](int f, void* p, std::size_t n, off_t) { return ::__read(f, p, n); }},
      {"__read_chk", true, [](int f, void* p, std::size_t n, off_t) { return ::__read_chk(f, p, n, n); }},
      {"pread", false, [](int f, void* p, std::size_t n, off_t o) { return ::pread(f, p, n, o); }},
      {"pread64", false, [](int f, void* p, std::size_t n, off_t o) { return ::pread64(f, p, n, o); }},
      {"__pread64", false, [](int f, void* p, std::size_t n, off_t o) { return ::__pread64(f, p, n, o); }},
      {"__pread_chk", false, [](int f, void* p, std::size_t n, off_t o) { return ::__pread_chk(f, p, n, o, n); }},
      {"__pread64_chk", false, [](int f, void* p, std::size_t n, off_t o) { return ::__pread64_chk(f, p, n, o, n); }},
      {"readv of one", true,
       [](int f, void* p, std::size_t n, off_t) {
         const iovec v{p, n};
         return ::readv(f, &v, 1);
       }},
      {"syscall(SYS_read)", true, [](int f, void* p, std::size_t n, off_t) { return ::syscall(0, f, p, n); }},
      {"syscall(SYS_pread64)", false, [](int f, void* p, std::size_t n, off_t o) { return ::syscall(17, f, p, n, o); }},
  };
  return all;
}

const std::vector<call>& writes() {
  static const std::vector<call> all = {
      {"write", true, [](int f, void* p, std::size_t n, off_t) { return ::write(f, p, n); }},
      {"__write", true, [](int f, void* p, std::size_t n, off_t) { return ::__write(f, p, n); }},
      {"pwrite", false, [](int f, void* p, std::size_t n, off_t o) { return ::pwrite(f, p, n, o); }},
      {"pwrite64", false, [](int f, void* p, std::size_t n, off_t o) { return ::pwrite64(f, p, n, o); }},
      {"__pwrite64", false, [](int f, void* p, std::size_t n, off_t o) { return ::__pwrite64(f, p, n, o); }},
      {"writev of one", true,
       [](int f, void* p, std::size_t n, off_t) {
         const iovec v{p, n};
         return ::writev(f, &v, 1);
       }},
      {"syscall(SYS_write)", true, [](int f, void* p, std::size_t n, off_t) { return ::syscall(1, f, p, n); }},
      {"syscall(SYS_pwrite64)", false,
       [](int f, void* p, std::size_t n, off_t o) { return ::syscall(18, f, p, n, o); }},
  };
  return all;
}

class files : public testing::TestWithParam<place> {};

TEST_P(files, EveryReadBringsItsBytesAndNoOthers) {
  const content source = random_content(room_for(GetParam()) + 100);
  const file f;
  f.fill(source);
  memory m(GetParam(), room_for(GetParam()));
  for (const call& c : reads()) {
    for (const std::size_t n : sizes_for(GetParam())) {
      m.renew();
      const std::size_t at = n % 41;
      const off_t offset = static_cast<off_t>(n % 53);
      ::lseek(f.get(), c.moves ? offset : 3, SEEK_SET);
      errno = untouched;
      ASSERT_EQ(c.run(f.get(), m.data() + at, n, offset), ssize_t(n)) << c.name << std::strerror(errno);
      ASSERT_EQ(errno, untouched) << c.name;
      ASSERT_EQ(f.position(), c.moves ? offset + off_t(n) : 3) << c.name;
      m.expect(at, {source.begin() + offset, source.begin() + offset + std::ptrdiff_t(n)});
      m.check((std::string("after ") + c.name + " of " + std::to_string(n)).c_str());
    }
    ASSERT_EQ(c.run(f.get(), m.data(), 0, 0), 0) << c.name;
    ::lseek(f.get(), 0, SEEK_END);
    ASSERT_EQ(c.run(f.get(), m.data(), 10, f.position()), 0) << c.name << " at the end";
    m.check(c.name);
  }
}

TEST_P(files, EveryWritePutsWhatAKernelOrTheHostWroteLast) {
  memory m(GetParam(), room_for(GetParam()));
  for (const call& c : writes()) {
    const file f;
    for (const std::size_t n : sizes_for(GetParam())) {
      m.renew();
      content before = random_content(n + 200);
      f.fill(before);
      const std::size_t at = n % 37;
      const off_t offset = static_cast<off_t>(n % 59);
      ::lseek(f.get(), c.moves ? offset : 3, SEEK_SET);
      errno = untouched;
      ASSERT_EQ(c.run(f.get(), m.data() + at, n, offset), ssize_t(n)) << c.name << std::strerror(errno);
      ASSERT_EQ(errno, untouched) << c.name;
      ASSERT_EQ(f.position(), c.moves ? offset + off_t(n) : 3) << c.name;
      const content written = m.part(at, n);
      std::copy(written.begin(), written.end(), before.begin() + offset);
      ASSERT_TRUE(f.all() == before) << c.name << " of " << n;
    }
    ASSERT_EQ(c.run(f.get(), m.data(), 0, 0), 0) << c.name;
    m.check(c.name);
  }
}

TEST_P(files, AShortReadChangesOnlyWhatItBrought) {
  memory m(GetParam(), 5000);
  const file f;
  for (const std::size_t there : {0UL, 1UL, 1234UL}) {
    m.renew();
    const content source = random_content(there);
    f.fill(source);
    ASSERT_EQ(::read(f.get(), m.data() + 5, 4900), ssize_t(there));
    m.expect(5, source);
    m.check("after a short read");
  }
}

TEST_P(files, ErrorsAreThoseOfOrdinaryMemory) {
  memory m(GetParam(), 5000);
  EXPECT_EQ(::read(-1, m.data(), 100), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(::write(-1, m.data(), 100), -1);
  EXPECT_EQ(errno, EBADF);
  const int folder = ::open("/tmp", O_RDONLY | O_DIRECTORY);
  EXPECT_EQ(::read(folder, m.data(), 100), -1);
  EXPECT_EQ(errno, EISDIR);
  ::close(folder);
  const file f;
  EXPECT_EQ(::pread(f.get(), m.data(), 100, -1), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(::pwrite(f.get(), m.data(), 100, -5), -1);
  EXPECT_EQ(errno, EINVAL);
  const int full = ::open("/dev/full", O_WRONLY);
  EXPECT_EQ(::write(full, m.data(), 100), -1);
  EXPECT_EQ(errno, ENOSPC);
  EXPECT_EQ(::read(full, m.data(), 100), -1);
  EXPECT_EQ(errno, EBADF);
  ::close(full);
  m.check("after errors");
}

TEST_P(files, AppendingWritesGoToTheEnd) {
  memory m(GetParam(), 5000);
  const file f(O_APPEND);
  content expected = random_content(100);
  f.fill(expected);
  for (int i = 0; i < 3; ++i) {
    m.renew();
    ::lseek(f.get(), 0, SEEK_SET);
    ASSERT_EQ(::write(f.get(), m.data(), 4999), 4999);
    const content more = m.part(0, 4999);
    expected.insert(expected.end(), more.begin(), more.end());
    ASSERT_EQ(f.position(), off_t(expected.size()));
  }
  ASSERT_TRUE(f.all() == expected);
}

TEST_P(files, DirectFilesGetTheAlignmentOfThePointer) {
  const file f(O_DIRECT, ".");
  if (f.get() < 0) GTEST_SKIP() << "no O_DIRECT here";
  memory m(GetParam(), GetParam() == place::small ? 20000 : 300000);
  const auto at = static_cast<std::size_t>(-reinterpret_cast<std::uintptr_t>(m.data()) % 4096);
  const std::size_t n = GetParam() == place::small ? 8192 : 262144;
  ASSERT_EQ(::write(f.get(), m.data() + at, n), ssize_t(n));
  EXPECT_EQ(::write(f.get(), m.data() + at, 1000), -1);  // not a multiple of the sector size
  EXPECT_EQ(errno, EINVAL);
  const content put = m.part(at, n);
  m.renew();
  ASSERT_EQ(::pread(f.get(), m.data() + at, n, 0), ssize_t(n));
  m.expect(at, put);
  m.check("after reading directly");
  EXPECT_EQ(::pread(f.get(), m.data() + at + 1, n, 0), -1) << "a byte off";
  EXPECT_EQ(errno, EINVAL);
}

INSTANTIATE_TEST_SUITE_P(Places, files, testing::ValuesIn(all_places), name_of_parameter);

// The operating system transfers and counts the bytes of a buffer up to the end of its mapping; hpe does the same up to
// the end of an allocation.
TEST(beyond_the_end, WhatIsInsideIsMovedAndCounted) {
  const file f;
  const content source = random_content(20000);
  for (const place where : {place::device, place::small, place::host, place::striped}) {
    SCOPED_TRACE(name_of(where));
    memory m(where, 9000);
    f.fill(source);
    ASSERT_EQ(::read(f.get(), m.data() + 100, 12000), 8900);
    EXPECT_EQ(f.position(), 8900);
    m.expect(100, {source.begin(), source.begin() + 8900});
    m.check("after a read beyond the end");
    f.fill({});
    ASSERT_EQ(::write(f.get(), m.data() + 8000, 5000), 1000);
    ASSERT_TRUE(f.all() == m.part(8000, 1000));
    ASSERT_EQ(::pwrite(f.get(), m.data() + 9000 - 1, 2, 0), 1);
  }
}

TEST(beyond_the_end, EnoughForAShortReadIsEnough) {
  const file f;
  const content source = random_content(500);
  f.fill(source);
  memory m(place::device, 1000);
  ASSERT_EQ(::read(f.get(), m.data(), 1 << 20), 500);
  m.expect(0, source);
  m.check("after it");
}

TEST(beyond_the_end, MemoryThatWasFreedIsABadAddress) {
  void* p = nullptr;
  ASSERT_EQ(hpeMalloc(&p, 1 << 20), HPE_SUCCESS);
  ASSERT_EQ(hpeFree(p), HPE_SUCCESS);
  const file f;
  f.fill(random_content(100));
  testing::internal::CaptureStderr();
  EXPECT_EQ(::read(f.get(), p, 100), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(f.position(), 0);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("read: the Linux kernel refused 100 bytes at"), std::string::npos) << told;
  EXPECT_NE(told.find("hpe has no allocation at this address"), std::string::npos) << told;
}

}  // namespace
