// System calls and files for which the operating system walks the whole address space: core files, and mlockall.

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "hpe/hpe.hpp"
#include "tests/core/kernels.h"
#include "tests/failure/child.h"
#include "tests/temporary_folder.h"

namespace {

using namespace failure_test;
using hpe::inout;

constexpr std::size_t mebi = std::size_t{1} << 20;

// For tests of core files. The child runs in a temporary folder, to which the system writes the child's core file.
class CoreFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ifstream pattern("/proc/sys/kernel/core_pattern");
    std::string name;
    std::getline(pattern, name);
    if (name.empty() || name[0] == '|' || name.find('/') != std::string::npos)
      GTEST_SKIP() << "core files go to \"" << name << '"';
    if (sanitizer_needs_mappings) GTEST_SKIP() << "sanitizers write no core files";
  }

  /// Called in the body of a child: prepares the process for a core file.
  void expect_core() const {
    const rlimit all{RLIM_INFINITY, RLIM_INFINITY};
    check(::setrlimit(RLIMIT_CORE, &all) == 0);
    check(::chdir(folder_.path().c_str()) == 0);
  }
  /// Returns the bytes of the child's core file. If there is no core file or it is too large, reports a failure and
  /// returns an empty string.
  [[nodiscard]] std::string content() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      struct stat about {};
      EXPECT_EQ(::stat(entry.path().c_str(), &about), 0);
      constexpr std::size_t most = 256 * mebi;
      EXPECT_LT(static_cast<std::size_t>(about.st_blocks) * 512, most);
      if (static_cast<std::size_t>(about.st_blocks) * 512 >= most) return {};
      std::ifstream file(entry.path(), std::ios::binary);
      return {std::istreambuf_iterator<char>(file), {}};
    }
    ADD_FAILURE() << "no core file";
    return {};
  }
  // Returns a string that is built at run time, so that the program's own data does not contain the string.
  static std::string marked(char with) { return std::string(3, with) + "-marks-the-data"; }

 private:
  const temporary_folder folder_;
};

bool limits_allow_cores() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_CORE, &limit) == 0 && (limit.rlim_max == RLIM_INFINITY || ::geteuid() == 0);
}

TEST_F(CoreFile, OfAnAbortHasHostMemoryAndSmallAllocations) {
  if (!limits_allow_cores()) GTEST_SKIP() << "core files are limited";
  const ended child = run_child([&] {
    char* small = nullptr;
    char* host = nullptr;
    check(hpeMalloc(reinterpret_cast<void**>(&small), mebi) == HPE_SUCCESS);
    check(hpeMallocHost(reinterpret_cast<void**>(&host), 20 * mebi) == HPE_SUCCESS);
    std::strcpy(small + mebi / 2, marked('a').c_str());
    std::strcpy(host + 17 * mebi, marked('b').c_str());
    expect_core();
    ::prctl(PR_SET_DUMPABLE, 1);
    std::abort();
  });
  EXPECT_TRUE(child.by_signal(SIGABRT)) << child;
  const std::string core = content();
  EXPECT_NE(core.find(marked('a')), std::string::npos);
  EXPECT_NE(core.find(marked('b')), std::string::npos);
}

TEST_F(CoreFile, OfAnInvalidAccessHasAllThatTheHostCanRead) {
  if (!limits_allow_cores()) GTEST_SKIP() << "core files are limited";
  const ended child = run_child([&] {
    constexpr std::size_t size = 512 * mebi;  // more than the tests allow for a core file
    char* large = nullptr;
    check(hpeMalloc(reinterpret_cast<void**>(&large), size) == HPE_SUCCESS);
    std::strcpy(large + 300 * mebi, marked('c').c_str());
    expect_core();
    ::prctl(PR_SET_DUMPABLE, 1);
    *static_cast<volatile char*>(nullptr) = 1;
  });
  EXPECT_TRUE(child.by_signal(SIGSEGV)) << child;
  EXPECT_NE(content().find(marked('c')), std::string::npos);
}

void lock_all(int flags) {
  if (::mlockall(flags) != 0) ::_exit(77);
}

void use_memory() {
  hpe::array<std::uint32_t> a(mebi);
  a[5] = 1;
  hpe::launch(test_kernel().increment, hpe::grid(test_tiles), {a.data(), a.size(), 1, 0}, inout(a));
  check(a[5] == 2 && a[6] == 1);
}

TEST(LockedMemory, CanBeAllThatIsUsedSoFar) {
  if (sanitizer_needs_mappings) GTEST_SKIP() << "the sanitizer's own memory would be locked";
  const ended child = run_child([] {
    use_memory();
    lock_all(MCL_CURRENT | MCL_FUTURE);
    use_memory();
    rusage used{};
    check(::getrusage(RUSAGE_SELF, &used) == 0 && static_cast<std::size_t>(used.ru_maxrss) * 1024 < 2048 * mebi);
  });
  if (WIFEXITED(child.status) && WEXITSTATUS(child.status) == 77) GTEST_SKIP() << "memory cannot be locked here";
  EXPECT_TRUE(child.well()) << child;
}

TEST(LockedMemory, CanBeAllThatWillBeUsed) {
  if (sanitizer_needs_mappings) GTEST_SKIP() << "the sanitizer's own memory would be locked";
  const ended child = run_child([] {
    lock_all(MCL_FUTURE);
    use_memory();
  });
  if (WIFEXITED(child.status) && WEXITSTATUS(child.status) == 77) GTEST_SKIP() << "memory cannot be locked here";
  EXPECT_TRUE(child.well()) << child;
}

}  // namespace
