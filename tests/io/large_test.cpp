// Large transfers of regular files. hpe transfers the bytes in chunks, but the program must see one call.

#undef _FORTIFY_SOURCE

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <thread>

#include "tests/io/support.h"
#include "tests/temporary_folder.h"

namespace {

// The number of bytes by which the next query of a file position moves the position, as if another thread had read
// these bytes.
std::atomic<off_t> read_by_others{0};

}  // namespace

// hpe calls this function in place of libc's function.
[[gnu::visibility("default")]] off_t lseek(int file, off_t offset, int whence) noexcept {
  const off_t result = ::syscall(SYS_lseek, file, offset, whence);
  if (offset == 0 && whence == SEEK_CUR) ::syscall(SYS_lseek, file, read_by_others.exchange(0), SEEK_CUR);
  return result;
}

namespace {

using namespace io_test;

constexpr std::size_t mebi = std::size_t{1} << 20;
constexpr std::size_t large = 37 * mebi + 12345;
constexpr int untouched = 4711;

content part_of(const content& all, std::size_t offset, std::size_t bytes) {
  return {all.begin() + std::ptrdiff_t(offset), all.begin() + std::ptrdiff_t(offset + bytes)};
}

class large_files : public testing::TestWithParam<place> {};

TEST_P(large_files, ReadAtThePositionAndAtAnOffset) {
  const content source = random_content(large);
  const file f;
  f.fill(source);
  memory m(GetParam(), large + 100);
  ::lseek(f.get(), 11, SEEK_SET);
  errno = untouched;
  ASSERT_EQ(::read(f.get(), m.data() + 3, large - 11), ssize_t(large - 11));
  EXPECT_EQ(errno, untouched);
  EXPECT_EQ(f.position(), off_t(large));
  m.expect(3, part_of(source, 11, large - 11));
  m.check("after read");
  m.renew();
  ASSERT_EQ(::pread(f.get(), m.data() + 50, 20 * mebi + 1, 4097), ssize_t(20 * mebi + 1));
  EXPECT_EQ(f.position(), off_t(large));
  m.expect(50, part_of(source, 4097, 20 * mebi + 1));
  m.check("after pread");
}

TEST_P(large_files, AReadAcrossTheEndOfTheFileIsShort) {
  const content source = random_content(large);
  const file f;
  f.fill(source);
  memory m(GetParam(), 48 * mebi);
  ASSERT_EQ(::read(f.get(), m.data(), 48 * mebi), ssize_t(large));
  EXPECT_EQ(f.position(), off_t(large));
  m.expect(0, source);
  m.check("after a short read");
  EXPECT_EQ(::read(f.get(), m.data(), 48 * mebi), 0);
  m.check("at the end");
}

TEST_P(large_files, WriteAtThePositionAndAtAnOffset) {
  memory m(GetParam(), large + 100);
  const file f;
  ::lseek(f.get(), 7, SEEK_SET);
  errno = untouched;
  ASSERT_EQ(::write(f.get(), m.data() + 5, large), ssize_t(large));
  EXPECT_EQ(errno, untouched);
  EXPECT_EQ(f.position(), off_t(large + 7));
  content expected(7);
  const content first = m.part(5, large);
  expected.insert(expected.end(), first.begin(), first.end());
  ASSERT_TRUE(f.all() == expected);
  m.renew();
  ASSERT_EQ(::pwrite(f.get(), m.data(), 10 * mebi, 100), ssize_t(10 * mebi));
  EXPECT_EQ(f.position(), off_t(large + 7));
  const content second = m.part(0, 10 * mebi);
  std::copy(second.begin(), second.end(), expected.begin() + 100);
  ASSERT_TRUE(f.all() == expected);
  m.check("after the writes");
}

TEST_P(large_files, AppendingStaysOneCall) {
  memory m(GetParam(), 12 * mebi);
  const file f(O_APPEND);
  content expected = random_content(10);
  f.fill(expected);
  ASSERT_EQ(::write(f.get(), m.data(), 12 * mebi), ssize_t(12 * mebi));
  const content more = m.part(0, 12 * mebi);
  expected.insert(expected.end(), more.begin(), more.end());
  ASSERT_TRUE(f.all() == expected);
}

TEST_P(large_files, Direct) {
  const file f(O_DIRECT, ".");
  if (f.get() < 0) GTEST_SKIP() << "no O_DIRECT here";
  constexpr std::size_t bytes = 24 * mebi + 4096;
  memory m(GetParam(), bytes + 8192);
  const auto at = static_cast<std::size_t>(-reinterpret_cast<std::uintptr_t>(m.data()) % 4096);
  ASSERT_EQ(::write(f.get(), m.data() + at, bytes), ssize_t(bytes)) << std::strerror(errno);
  EXPECT_EQ(f.position(), off_t(bytes));
  const content put = m.part(at, bytes);
  EXPECT_EQ(::write(f.get(), m.data() + at, 20 * mebi + 100), -1) << "no multiple of a sector";
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(f.position(), off_t(bytes));
  // The last sector is incomplete. If the operating system writes directly into the program's memory, it may fill the
  // whole sector.
  const std::size_t there = GetParam() == place::host ? bytes : bytes - 100;
  ASSERT_EQ(::ftruncate(f.get(), off_t(there)), 0);
  m.renew();
  ::lseek(f.get(), 0, SEEK_SET);
  ASSERT_EQ(::read(f.get(), m.data() + at, bytes), ssize_t(there));
  EXPECT_EQ(f.position(), off_t(there));
  m.expect(at, part_of(put, 0, there));
  m.check("after reading directly");
  EXPECT_EQ(::pread(f.get(), m.data() + at + 8, 20 * mebi, 0), -1);
  EXPECT_EQ(errno, EINVAL);
  m.check("after an address that is not aligned");
}

TEST_P(large_files, WhatHasTheWrongMode) {
  memory m(GetParam(), 9 * mebi);
  const std::string name = "/tmp/hpe-test-io-" + std::to_string(::getpid());
  const int writes = ::open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ASSERT_EQ(::ftruncate(writes, 9 * mebi), 0);
  EXPECT_EQ(::read(writes, m.data(), 9 * mebi), -1);
  EXPECT_EQ(errno, EBADF);
  const int reads = ::open(name.c_str(), O_RDONLY);
  EXPECT_EQ(::write(reads, m.data(), 9 * mebi), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(::lseek(reads, 0, SEEK_CUR), 0);
  ::close(reads);
  ::close(writes);
  ::unlink(name.c_str());
  m.check("after errors");
}

INSTANTIATE_TEST_SUITE_P(Places, large_files,
                         testing::Values(place::device, place::host_owned, place::striped, place::host),
                         name_of_parameter);

// A file system that has space for only a part of the data.
class full_disk : public testing::Test {
 protected:
  void SetUp() override {
    if (::mount("none", folder_.path().c_str(), "tmpfs", 0, "size=16m") != 0)
      GTEST_SKIP() << "may not mount: " << std::strerror(errno);
    is_mounted_ = true;
  }
  void TearDown() override {
    if (is_mounted_) ::umount(folder_.path().c_str());
  }
  const temporary_folder folder_;

 private:
  bool is_mounted_ = false;
};

TEST_F(full_disk, TheCountIsWhatFitted) {
  memory m(place::device, 30 * mebi);
  {
    const file f(0, folder_.path().c_str());
    ASSERT_EQ(::write(f.get(), m.data(), 30 * mebi), ssize_t(16 * mebi));
    EXPECT_EQ(f.position(), off_t(16 * mebi));
    struct stat status {};
    ::fstat(f.get(), &status);
    EXPECT_EQ(status.st_size, off_t(16 * mebi));
    ASSERT_TRUE(f.all() == m.part(0, 16 * mebi));
    EXPECT_EQ(::write(f.get(), m.data() + 16 * mebi, 14 * mebi), -1);
    EXPECT_EQ(errno, ENOSPC);
    EXPECT_EQ(f.position(), off_t(16 * mebi));
    EXPECT_EQ(::pwrite(f.get(), m.data(), 14 * mebi, 16 * mebi), -1);
    EXPECT_EQ(errno, ENOSPC);
  }
  const file f(0, folder_.path().c_str());
  std::FILE* stream = ::fdopen(::dup(f.get()), "w");
  EXPECT_LT(std::fwrite(m.data(), 1, 30 * mebi, stream), 30 * mebi);
  EXPECT_EQ(errno, ENOSPC);
  EXPECT_NE(std::ferror(stream), 0);
  std::fclose(stream);
  m.check("after a full disk");
}

// Limits of the process, tested in a child process. It exits with 0, or with the number of the failed check.
class limits : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

void write_beyond_the_largest_file() {
  memory m(place::device, 20 * mebi);
  const file f;
  const rlimit limit{12 * mebi, 12 * mebi};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  if (::write(f.get(), m.data(), 20 * mebi) != ssize_t(12 * mebi)) ::_exit(1);
  if (f.position() != off_t(12 * mebi)) ::_exit(2);
  static int signals = 0;
  ::signal(SIGXFSZ, [](int) { ++signals; });
  if (::write(f.get(), m.data(), 20 * mebi) != -1 || errno != EFBIG) ::_exit(3);
  ::_exit(signals == 1 ? 0 : 4);
}

TEST_F(limits, AFileThatMayNotGrow) { EXPECT_EXIT(write_beyond_the_largest_file(), testing::ExitedWithCode(0), ""); }

// If hpe cannot start threads, a call transfers the same bytes more slowly.
void move_without_threads() {
  memory m(place::device, 20 * mebi);
  const file f;
  f.fill(random_content(20 * mebi));
  m.check("before");
  const rlimit limit{0, 0};
  ::setrlimit(RLIMIT_NPROC, &limit);
  if (::setresuid(65534, 65534, 65534) != 0) ::_exit(0);  // root has no such limit, so the check needs another user
  if (::pread(f.get(), m.data(), 20 * mebi, 0) != ssize_t(20 * mebi)) ::_exit(1);
  if (::pwrite(f.get(), m.data(), 20 * mebi, 0) != ssize_t(20 * mebi)) ::_exit(2);
  ::_exit(0);
}

TEST_F(limits, NoMoreThreads) { EXPECT_EXIT(move_without_threads(), testing::ExitedWithCode(0), ""); }

// Several threads share a file and its position: each byte is read once and written once.
TEST(threads, ShareAPosition) {
  constexpr std::size_t each = 9 * mebi;
  constexpr int count = 4;
  const content source = random_content(each * count);
  const file from;
  from.fill(source);
  const file to;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t)
    threads.emplace_back([&] {
      const hpe::array<std::byte> mine(each);
      wrong += ::read(from.get(), mine.data(), each) != ssize_t(each);
      wrong += ::write(to.get(), mine.data(), each) != ssize_t(each);
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(from.position(), off_t(each * count));
  EXPECT_EQ(to.position(), off_t(each * count));
  // The threads may read the parts in any order.
  const content copied = to.all();
  ASSERT_EQ(copied.size(), source.size());
  for (int i = 0; i < count; ++i) {
    bool found = false;
    for (int k = 0; k < count; ++k)
      found =
          found || std::memcmp(copied.data() + std::size_t(i) * each, source.data() + std::size_t(k) * each, each) == 0;
    EXPECT_TRUE(found) << "part " << i;
  }
}

TEST(threads, AReadBeginsWhereAnotherOneHasEnded) {
  const content source = random_content(20 * mebi);
  const file f;
  f.fill(source);
  ::lseek(f.get(), 0, SEEK_SET);
  memory m(place::device, 9 * mebi);
  read_by_others = 10 * mebi;
  ASSERT_EQ(::read(f.get(), m.data(), 9 * mebi), ssize_t(9 * mebi));
  EXPECT_EQ(read_by_others, 0);
  EXPECT_EQ(f.position(), off_t(19 * mebi));
  m.expect(0, part_of(source, 10 * mebi, 9 * mebi));
  m.check("after a read from the position at which the other read ended");
}

TEST(threads, ReadAndWriteAtOnce) {
  const content source = random_content(10 * mebi);
  const file f;
  f.fill(source);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const file mine;
      for (int round = 0; round < 3; ++round) {
        const hpe::array<std::byte> a = t % 2 == 0 ? hpe::array<std::byte>(10 * mebi)
                                                   : hpe::array<std::byte>(10 * mebi, hpe::cyclic_distribution());
        wrong += ::pread(f.get(), a.data(), 10 * mebi, 0) != ssize_t(10 * mebi);
        wrong += ::pwrite(mine.get(), a.data(), 10 * mebi, round) != ssize_t(10 * mebi);
        content back(10 * mebi);
        wrong += ::pread(mine.get(), back.data(), 10 * mebi, round) != ssize_t(10 * mebi);
        wrong += back != source;
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

// A thread that is to be cancelled ends at the beginning of a call, like at any other cancellation point, and not in
// the middle of one. A call leaves the thread cancellable.
TEST(threads, AreCancelledBeforeACallAndNotInIt) {
  const file f;
  f.fill(random_content(9 * mebi));
  ::lseek(f.get(), 0, SEEK_SET);
  memory m(place::device, 9 * mebi);
  struct arguments {
    memory* m;
    int file;
    bool ends_before_the_call;
    int state = -1;
  };
  const auto read_all = [](void* p) -> void* {
    auto* const a = static_cast<arguments*>(p);
    if (a->ends_before_the_call) ::pthread_cancel(::pthread_self());
    (void)!::read(a->file, a->m->data(), 9 * mebi);
    ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &a->state);
    return nullptr;
  };
  for (const bool ends : {true, false}) {
    arguments given{&m, f.get(), ends};
    pthread_t reader{};
    ASSERT_EQ(::pthread_create(&reader, nullptr, read_all, &given), 0);
    void* result = nullptr;
    ASSERT_EQ(::pthread_join(reader, &result), 0);
    EXPECT_EQ(result == PTHREAD_CANCELED, ends);
    EXPECT_EQ(f.position(), ends ? 0 : off_t(9 * mebi));
    EXPECT_EQ(given.state, ends ? -1 : PTHREAD_CANCEL_ENABLE);
  }
}

// The limit of a file's size counts from the beginning of the file, not of the write.
void write_up_to_the_largest_file() {
  memory m(place::device, 20 * mebi);
  const file f;
  const rlimit limit{20 * mebi, 20 * mebi};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  ::signal(SIGXFSZ, SIG_IGN);
  if (::pwrite(f.get(), m.data(), 20 * mebi, 5 * mebi) != ssize_t(15 * mebi)) ::_exit(1);
  if (::pwrite(f.get(), m.data(), 10 * mebi, 10 * mebi) != ssize_t(10 * mebi)) ::_exit(2);
  if (::pwrite(f.get(), m.data(), 10 * mebi, 20 * mebi) != -1 || errno != EFBIG) ::_exit(3);
  if (::pwrite(f.get(), m.data(), 10 * mebi, 30 * mebi) != -1 || errno != EFBIG) ::_exit(4);
  if (f.all().size() != 20 * mebi) ::_exit(5);
  ::_exit(0);
}

TEST_F(limits, AWriteInTheMiddleOfAFileThatMayNotGrow) {
  EXPECT_EXIT(write_up_to_the_largest_file(), testing::ExitedWithCode(0), "");
}

TEST(special_files, AreReadInOneCall) {
  memory m(place::device, 9 * mebi);
  const int maps = ::open("/proc/self/maps", O_RDONLY);
  content ordinary(9 * mebi);
  EXPECT_GT(::read(maps, m.data(), 9 * mebi), 100);
  ::close(maps);
  EXPECT_NE(std::string(reinterpret_cast<const char*>(m.data()), 100).find('-'), std::string::npos);
  const int zero = ::open("/dev/zero", O_RDONLY);
  EXPECT_EQ(::read(zero, m.data(), 9 * mebi), ssize_t(9 * mebi));
  ::close(zero);
  m.expect(0, content(9 * mebi));
  m.check("after zeros");
}

}  // namespace
