// Data larger than host memory (HPE_HOST_MEMORY): each test uses several times the limit, so that most of its data is
// in the spill file at any time.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <ostream>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "hpe/hpe.hpp"
#include "tests/core/kernels.h"
#include "tests/core/status.h"
#include "tests/temporary_folder.h"

namespace {

using hpe::in;
using hpe::inout;
using hpe::out;

constexpr std::size_t mebi = std::size_t{1} << 20;
constexpr std::size_t host_limit = 16 * mebi;
constexpr std::size_t staging = 8 * mebi;

// Variables that the runtime reads when it starts.
const std::string folder = [] {
  static const temporary_folder made;
  ::setenv("HPE_DEVICES", "soft:2", 0);
  ::setenv("HPE_DEVICE_MEMORY", "8M", 0);
  ::setenv("HPE_HOST_MEMORY", "16M", 0);
  ::setenv("HPE_STAGING_BUFFERS", "2", 0);
  ::setenv("HPE_SPILL", made.path().c_str(), 0);
  return made.path();
}();

using numbers = hpe::array<std::uint32_t>;
constexpr std::size_t part = mebi / 2;  // elements: 2 MiB
constexpr std::size_t whole = 4 * host_limit / sizeof(std::uint32_t);

/// Returns the descriptor of an open file of this process whose name begins with `beginning`; -1 if there is none.
int find_file(const std::string& beginning) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code failed;
    const auto target = std::filesystem::read_symlink(entry.path(), failed);
    if (!failed && target.string().starts_with(beginning)) return std::stoi(entry.path().filename().string());
  }
  return -1;
}

std::size_t memory_of_shadow() {
  struct stat its {};
  EXPECT_EQ(::fstat(find_file("/memfd:hpe-shadow"), &its), 0);
  return static_cast<std::size_t>(its.st_blocks) * 512;
}

/// Returns the bytes of the spill file. The file never becomes shorter; later data reuses the freed parts.
std::size_t size_of_file() {
  struct stat its {};
  const int file = find_file(folder);
  return file >= 0 && ::fstat(file, &its) == 0 ? static_cast<std::size_t>(its.st_size) : 0;
}

/// Returns a number of elements that do not fit into host memory and the spill file at its present size, which depends
/// on earlier tests.
std::size_t beyond_the_file() { return whole + size_of_file() / sizeof(std::uint32_t); }

void increment(const numbers& a, std::size_t first, std::size_t count, std::uint32_t by, int device = 0) {
  hpe::launch_on(device, test_kernel().increment, hpe::grid(test_tiles), {a.data() + first, count, by, 0},
                 inout(std::span(a.data() + first, count)));
}

/// While an object exists, the size of files is limited, so that the spill file cannot grow, as on a full disk.
class full_disk {
 public:
  full_disk() {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    rlimit low = old_;
    low.rlim_cur = std::max<rlim_t>(size_of_file(), mebi);
    ::setrlimit(RLIMIT_FSIZE, &low);
  }
  ~full_disk() { ::setrlimit(RLIMIT_FSIZE, &old_); }
  full_disk(const full_disk&) = delete;
  full_disk& operator=(const full_disk&) = delete;

 private:
  rlimit old_{};
};

// This test must run first: after other tests, free parts of the file could store the data; and hpe warns only once.
TEST(spill, CpuCodeGoesBeyondTheLimitWhereTheDiskIsFull) {
  const numbers a(whole);
  {
    const full_disk disk;
    testing::internal::CaptureStderr();
    std::iota(a.begin(), a.end(), 0U);
    const std::string words = testing::internal::GetCapturedStderr();
    EXPECT_NE(words.find("HPE_HOST_MEMORY"), std::string::npos) << words;
    EXPECT_NE(words.find("RLIMIT_FSIZE"), std::string::npos) << words;
    EXPECT_GE(memory_of_shadow(), whole * sizeof(std::uint32_t));
  }
  for (std::size_t i = 0; i < whole; ++i) ASSERT_EQ(a[i], i) << i;
}

TEST(spill, CpuCodeUsesFourTimesTheLimit) {
  const numbers a(whole);
  std::iota(a.begin(), a.end(), 7U);
  EXPECT_LE(memory_of_shadow(), host_limit + staging);
  for (std::size_t i = 0; i < whole; ++i) ASSERT_EQ(a[i], i + 7) << i;
  EXPECT_LE(memory_of_shadow(), host_limit + staging);
  const hpeStatistics after = hpe::statistics();
  EXPECT_GE(after.bytes_spilled, whole * sizeof(std::uint32_t) - host_limit);
  EXPECT_GE(after.bytes_unspilled, whole * sizeof(std::uint32_t) - host_limit);
}

TEST(spill, BytesThatWereOnlyReadAreNotWrittenAgain) {
  const numbers a(whole);
  std::iota(a.begin(), a.end(), 0U);
  std::uint64_t sum = 0;
  for (const std::uint32_t x : a) sum += x;
  const hpeStatistics before = hpe::statistics();
  for (const std::uint32_t x : a) sum -= x;
  const numbers result(part);
  for (std::size_t at = 0; at < whole; at += part)
    hpe::launch(test_kernel().add, hpe::grid(test_tiles), {result.data(), a.data() + at, a.data() + at, part},
                out(result), in(std::span(a.data() + at, part)));
  EXPECT_EQ(result[1], 2 * (whole - part + 1));
  EXPECT_EQ(sum, 0U);
  const hpeStatistics after = hpe::statistics();
  EXPECT_LE(after.bytes_spilled - before.bytes_spilled, host_limit);
  EXPECT_GE(after.bytes_unspilled - before.bytes_unspilled, 2 * (whole * sizeof(std::uint32_t) - host_limit));
}

TEST(spill, DevicesComputeWithFourTimesTheLimit) {
  const numbers a(whole);
  std::iota(a.begin(), a.end(), 0U);
  for (std::uint32_t round = 1; round <= 2; ++round)
    for (std::size_t at = 0; at < whole; at += part) increment(a, at, part, round);
  EXPECT_LE(memory_of_shadow(), host_limit + staging);
  for (std::size_t i = 0; i < whole; ++i) ASSERT_EQ(a[i], i + 3) << i;
}

TEST(spill, CopiesAndFills) {
  const numbers a(whole);
  const numbers b(whole, hpe::on_device(1));
  std::vector<std::uint32_t> source(whole);
  std::iota(source.begin(), source.end(), 1U);
  const std::size_t bytes = whole * sizeof(std::uint32_t);
  ASSERT_EQ(hpeMemcpy(a.data(), source.data(), bytes), HPE_SUCCESS) << hpeGetLastErrorMessage();
  ASSERT_EQ(hpeMemcpy(b.data(), a.data(), bytes), HPE_SUCCESS) << hpeGetLastErrorMessage();
  ASSERT_EQ(hpeMemset(a.data(), 0xff, bytes), HPE_SUCCESS) << hpeGetLastErrorMessage();
  std::vector<std::uint32_t> result(whole);
  ASSERT_EQ(hpeMemcpy(result.data(), b.data(), bytes), HPE_SUCCESS) << hpeGetLastErrorMessage();
  EXPECT_EQ(result, source);
  ASSERT_EQ(hpeMigrate(b.data(), 0), HPE_SUCCESS) << hpeGetLastErrorMessage();  // through the host, beyond its limit
  for (std::size_t i = 0; i < whole; i += 1023) ASSERT_EQ(b[i], source[i]) << i;
  for (std::size_t i = 0; i < whole; i += 1023) ASSERT_EQ(a[i], ~0U) << i;
}

TEST(spill, ThreadsAndDevicesUseTheSameData) {
  const numbers a(whole);
  std::vector<std::thread> threads;
  constexpr std::size_t count = 4;
  constexpr std::size_t each = whole / count;
  for (std::size_t t = 0; t < count; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      std::vector<std::uint32_t> expected(each / part);
      for (int step = 0; step < 150; ++step) {
        const std::size_t n = random() % expected.size();
        const std::size_t at = t * each + n * part;
        const std::size_t i = at + random() % part;
        if (random() % 2 == 0) {
          increment(a, at, part, 1, static_cast<int>(t % 2));
          ++expected[n];
        } else if (random() % 2 == 0) {
          ASSERT_EQ(a[i], expected[n]) << i;
        } else {
          a[i] = a[i];  // a write that changes nothing
        }
      }
      for (std::size_t n = 0; n < expected.size(); ++n)
        for (std::size_t i = 0; i < part; i += 511) ASSERT_EQ(a[t * each + n * part + i], expected[n]);
    });
  }
  for (std::thread& t : threads) t.join();
}

TEST(spill, AFullDiskIsAnErrorOfTheLaunchAndNothingIsLost) {
  const numbers a(whole);
  std::iota(a.begin(), a.end(), 0U);  // the data is then in the file and in host memory
  const std::size_t more = beyond_the_file();
  const numbers b(more);
  std::size_t done = 0;
  {
    const full_disk disk;
    const hpeShape shape = hpe::grid(test_tiles);
    hpeStatus status = HPE_SUCCESS;
    for (; done < more && status == HPE_SUCCESS; done += status == HPE_SUCCESS ? part : 0) {
      const increment_parameters some{b.data() + done, part, 5, 0};
      const hpeAccess access{b.data() + done, part * sizeof(std::uint32_t), HPE_INOUT};
      status = hpeLaunch(0, test_kernel().increment.get(), &shape, &some, sizeof some, &access, 1);
    }
    ASSERT_LT(done, more);
    EXPECT_TRUE(fails(status, HPE_ERROR_OUT_OF_MEMORY, {"16777216 (HPE_HOST_MEMORY)", folder.c_str(), "RLIMIT_FSIZE"}));
  }
  for (std::size_t i = 0; i < whole; ++i) ASSERT_EQ(a[i], i) << i;
  for (std::size_t i = 0; i < done + part; ++i) ASSERT_EQ(b[i], i < done ? 5U : 0U) << i;
  increment(b, done, part, 1);
  EXPECT_EQ(b[done], 1U);
}

/// While an object exists, the descriptor of the spill file refers to another file. That file is open only for reading,
/// so writes fail.
class broken_disk {
 public:
  explicit broken_disk(const char* instead) : file_(find_file(folder)), old_(::dup(file_)) {
    const int other = ::open(instead, O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(::dup3(other, file_, O_CLOEXEC), file_);
    ::close(other);
  }
  ~broken_disk() {
    EXPECT_EQ(::dup3(old_, file_, O_CLOEXEC), file_);
    ::close(old_);
  }
  broken_disk(const broken_disk&) = delete;
  broken_disk& operator=(const broken_disk&) = delete;

 private:
  const int file_;
  const int old_;
};

struct failing_read {
  const char* instead;
  const char* words;
};
void PrintTo(const failing_read& how, std::ostream* to) { *to << how.words; }
class spill_failures : public testing::TestWithParam<failing_read> {};

TEST_P(spill_failures, AreErrorsOfWhatNeedsTheFileAndNothingIsLost) {
  const numbers a(whole);
  std::iota(a.begin(), a.end(), 0U);
  // After this, all data is in the file, so data in memory can be evicted without a write.
  EXPECT_TRUE(std::is_sorted(a.begin(), a.end()));
  const std::size_t bytes = part * sizeof(std::uint32_t);
  const hpeShape shape = hpe::grid(test_tiles);
  {
    const broken_disk disk(GetParam().instead);
    std::vector<std::uint32_t> copy(part);
    EXPECT_TRUE(fails(hpeMemcpy(copy.data(), a.data(), bytes), HPE_ERROR_SYSTEM,
                      {"HPE_SPILL", folder.c_str(), GetParam().words}));
    const increment_parameters some{a.data(), part, 1, 0};
    const hpeAccess access{a.data(), bytes, HPE_INOUT};
    EXPECT_TRUE(fails(hpeLaunch(0, test_kernel().increment.get(), &shape, &some, sizeof some, &access, 1),
                      HPE_ERROR_SYSTEM, {"HPE_SPILL", GetParam().words}));
    EXPECT_EQ(a[whole - 1], whole - 1);  // data in memory is not affected
    // Overwriting data does not need the file.
    const hpeAccess overwritten{a.data() + part, bytes, HPE_OUT};
    const increment_parameters others{a.data() + part, part, 1, 0};
    ASSERT_EQ(hpeMemset(a.data() + part, 0, bytes), HPE_SUCCESS) << hpeGetLastErrorMessage();
    ASSERT_EQ(hpeLaunch(0, test_kernel().increment.get(), &shape, &others, sizeof others, &overwritten, 1),
              HPE_SUCCESS);
    EXPECT_EQ(a[part + 1], 1U);
  }
  for (std::size_t i = 0; i < part; ++i) ASSERT_EQ(a[i], i) << i;
  for (std::size_t i = part; i < 2 * part; ++i) ASSERT_EQ(a[i], 1U) << i;
  for (std::size_t i = 2 * part; i < whole; ++i) ASSERT_EQ(a[i], i) << i;
}

// Reading /proc/self/mem at an address at which nothing is mapped gives the error EIO.
INSTANTIATE_TEST_SUITE_P(, spill_failures,
                         testing::Values(failing_read{"/proc/self/mem", "Input/output error"},
                                         failing_read{"/dev/null", "shorter"}),
                         [](const auto& info) { return info.index == 0 ? "an_unreadable_file" : "a_short_file"; });

TEST(spill, FilesAndFork) {
  const numbers a(whole);
  std::iota(a.begin(), a.end(), 3U);
  const std::size_t bytes = whole * sizeof(std::uint32_t);
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  const int fd = ::fileno(file);
  std::size_t done = 0;
  for (ssize_t n = 1; done < bytes && n > 0; done += static_cast<std::size_t>(std::max<ssize_t>(n, 0)))
    n = ::pwrite(fd, reinterpret_cast<const std::byte*>(a.data()) + done, bytes - done, static_cast<off_t>(done));
  ASSERT_EQ(done, bytes);
  const numbers b(whole);
  done = 0;
  for (ssize_t n = 1; done < bytes && n > 0; done += static_cast<std::size_t>(std::max<ssize_t>(n, 0)))
    n = ::pread(fd, reinterpret_cast<std::byte*>(b.data()) + done, bytes - done, static_cast<off_t>(done));
  ASSERT_EQ(done, bytes);
  std::fclose(file);
  // A child that does not use the data ends normally and does not change the parent's file.
  const pid_t child = ::fork();
  if (child == 0) ::_exit(7);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  for (std::size_t i = 0; i < whole; ++i) ASSERT_EQ(b[i], i + 3) << i;
  for (std::size_t i = 0; i < whole; ++i) ASSERT_EQ(a[i], i + 3) << i;
}

TEST(spill, HostMemoryCountsAndStays) {
  void* p = nullptr;
  EXPECT_TRUE(fails(hpeMallocHost(&p, 2 * host_limit), HPE_ERROR_OUT_OF_MEMORY, {"33554432", "12582912", "16777216"}));
  // hpe keeps the buffers through which earlier tests read and wrote files. HPE_HOST_MEMORY does not limit these
  // buffers.
  const std::size_t kept = memory_of_shadow();
  const numbers a(whole);
  std::iota(a.begin(), a.end(), 0U);
  ASSERT_EQ(hpeMallocHost(&p, host_limit / 2), HPE_SUCCESS) << hpeGetLastErrorMessage();
  auto* const b = static_cast<std::uint32_t*>(p);
  std::fill_n(b, host_limit / 2 / sizeof(std::uint32_t), 9U);
  for (std::size_t i = 0; i < whole; ++i) ASSERT_EQ(a[i], i) << i;
  EXPECT_LE(memory_of_shadow(), kept + host_limit + staging);
  EXPECT_EQ(b[5], 9U);
  EXPECT_EQ(hpeFree(p), HPE_SUCCESS);
}

TEST(spill, FreedAllocationsGiveTheirMemoryAndTheirPartOfTheFileBack) {
  std::uint64_t file_size = 0;
  for (int round = 0; round < 4; ++round) {
    const numbers a(whole);
    std::iota(a.begin(), a.end(), 0U);
    EXPECT_EQ(a[0], 0U);
    struct stat its {};
    ASSERT_EQ(::fstat(find_file(folder), &its), 0);
    if (round == 0) file_size = static_cast<std::uint64_t>(its.st_size);
    EXPECT_LE(static_cast<std::uint64_t>(its.st_size), file_size + 64 * mebi);
  }
}

}  // namespace
