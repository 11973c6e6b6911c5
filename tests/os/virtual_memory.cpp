#include "runtime/os/virtual_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <string>

#include "hpe/error.hpp"
#include "tests/os/used_mappings.h"

namespace {

using namespace hpe;
using os::page_protection;

constexpr std::size_t MiB = std::size_t{1} << 20;

// An address that no sanitizer uses for its shadow memory.
constexpr std::uintptr_t hint = 0x7e9000000000;

// Returns the exit status of a child process that runs the body; -1 if a signal ends the child.
int exit_code_of(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Whether the operating system can read, or write, a byte at p. Tests the protection of a page without a fault.
bool readable(const void* p) {
  int ends[2];
  if (::pipe(ends) != 0) return false;
  const bool ok = ::write(ends[1], p, 1) == 1;
  ::close(ends[0]);
  ::close(ends[1]);
  return ok;
}

bool writable(void* p) {
  const int zeros = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
  const bool ok = ::read(zeros, p, 1) == 1;
  ::close(zeros);
  return ok;
}

TEST(Reservation, TakesTheHint) {
  const os::reservation r(hint, 8 * MiB, 2 * MiB);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(r.data()), hint);
  EXPECT_EQ(r.size(), 8 * MiB);
  EXPECT_FALSE(readable(r.data()));
}

TEST(Reservation, GoesElsewhereWhenTheHintIsTaken) {
  const os::reservation first(hint, 8 * MiB, MiB);
  const os::reservation second(hint + 4 * MiB, 8 * MiB, 4 * MiB);
  EXPECT_NE(second.data(), nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second.data()) % (4 * MiB), 0u);
  EXPECT_TRUE(second.data() >= first.data() + first.size() || second.data() + second.size() <= first.data());
}

TEST(Reservation, GivesTheRangeBack) {
  { const os::reservation r(hint, 8 * MiB, MiB); }
  os::reservation again(hint, 8 * MiB, MiB);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(again.data()), hint);
  os::reservation moved(std::move(again));
  EXPECT_EQ(again.data(), nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(moved.data()), hint);
}

TEST(Reservation, IsExchangedForAnother) {
  os::reservation small(hint, 4 * MiB, MiB);
  os::reservation large(hint + 8 * MiB, 8 * MiB, MiB);
  small = std::move(large);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(small.data()), hint + 8 * MiB);
  EXPECT_EQ(small.size(), 8 * MiB);
}

TEST(Reservation, TooMuchIsAnErrorThatSaysHowMuch) {
  try {
    const os::reservation r(hint, std::size_t{1} << 50, MiB);
    ADD_FAILURE() << "a pebibyte was reserved";
  } catch (const error& e) {
    EXPECT_EQ(e.status(), HPE_ERROR_SYSTEM);
    EXPECT_NE(std::string(e.what()).find("1125899906842624 bytes"), std::string::npos) << e.what();
  }
}

TEST(Reservation, AtAnAddressGoesNowhereElse) {
  const os::reservation first = os::reservation::at(hint, 8 * MiB);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first.data()), hint);
  EXPECT_EQ(first.size(), 8 * MiB);
  EXPECT_FALSE(readable(first.data()));
  const os::reservation second = os::reservation::at(hint + 4 * MiB, 8 * MiB);
  EXPECT_EQ(second.data(), nullptr);
  EXPECT_EQ(second.size(), 0U);
  // Neither is there address space of this size anywhere else.
  EXPECT_EQ(os::reservation::at(hint, std::size_t{1} << 50).size(), 0U);
}

class MemoryFile : public testing::Test {
 protected:
  static constexpr std::size_t size = 8 * MiB;
  const os::file_descriptor file = os::create_memory_file("hpe-test", size);
  const os::reservation view{hint, size, MiB};
  const os::reservation alias{hint + size, size, MiB};

  void SetUp() override {
    os::map_file(view.data(), size, page_protection::read_write, file.get(), 0);
    os::map_file(alias.data(), size, page_protection::read_write, file.get(), 0);
  }

  [[nodiscard]] std::int64_t bytes_used() const {
    struct stat status {};
    ::fstat(file.get(), &status);
    return status.st_blocks * 512;
  }
};

TEST_F(MemoryFile, IsSharedByItsMappings) {
  view.data()[5 * MiB] = std::byte{9};
  EXPECT_EQ(alias.data()[5 * MiB], std::byte{9});
  alias.data()[MiB] = std::byte{8};
  EXPECT_EQ(view.data()[MiB], std::byte{8});
}

TEST_F(MemoryFile, TakesMemoryAsItIsTouched) {
  EXPECT_EQ(bytes_used(), 0);
  view.data()[0] = std::byte{1};
  EXPECT_GT(bytes_used(), 0);
  EXPECT_LT(bytes_used(), static_cast<std::int64_t>(size));
}

TEST_F(MemoryFile, DiscardedPagesReadAsZeroEverywhere) {
  std::memset(view.data(), 1, size);
  os::discard(file.get(), 2 * MiB, 4 * MiB);
  for (const std::byte* p : {view.data(), alias.data()}) {
    EXPECT_EQ(p[2 * MiB - 1], std::byte{1});
    EXPECT_EQ(p[2 * MiB], std::byte{0});
    EXPECT_EQ(p[6 * MiB - 1], std::byte{0});
    EXPECT_EQ(p[6 * MiB], std::byte{1});
  }
  os::discard(file.get(), 0, size);
  EXPECT_EQ(view.data()[0], std::byte{0});
  struct stat status {};
  ASSERT_EQ(::fstat(file.get(), &status), 0);
  EXPECT_EQ(status.st_size, static_cast<off_t>(size)) << "the file keeps its length";
}

TEST_F(MemoryFile, PartsCanBeUnmappedAndMappedAgain) {
  std::memset(view.data(), 7, size);
  os::unmap_to_reserved(view.data() + MiB, MiB);
  EXPECT_FALSE(readable(view.data() + MiB));
  EXPECT_TRUE(readable(view.data()));
  EXPECT_TRUE(readable(view.data() + 2 * MiB));
  os::map_file(view.data() + MiB, MiB, page_protection::read, file.get(), MiB);
  EXPECT_EQ(view.data()[MiB], std::byte{7});
  EXPECT_FALSE(writable(view.data() + MiB));
}

TEST_F(MemoryFile, ProtectionIsPerPageAndLeavesTheAliasAlone) {
  const std::size_t page = os::page_size();
  ASSERT_TRUE(os::protect(view.data(), page, page_protection::none));
  ASSERT_TRUE(os::protect(view.data() + page, page, page_protection::read));
  EXPECT_FALSE(readable(view.data()));
  EXPECT_TRUE(readable(view.data() + page));
  EXPECT_FALSE(writable(view.data() + page));
  EXPECT_TRUE(writable(view.data() + 2 * page));
  EXPECT_TRUE(writable(alias.data()));
  ASSERT_TRUE(os::protect(view.data(), 2 * page, page_protection::read_write));
  EXPECT_TRUE(writable(view.data()));
}

TEST_F(MemoryFile, PagesThatAreSetApartAreAMappingOfTheirOwnUntilTheyRejoin) {
  const std::size_t page = os::page_size();
  EXPECT_EQ(mappings_in(view.data(), size), 1U);
  os::set_apart(view.data() + MiB, page);
  EXPECT_EQ(mappings_in(view.data(), size), 3U);
  ASSERT_TRUE(os::protect(view.data() + MiB, page, page_protection::read));
  EXPECT_FALSE(writable(view.data() + MiB));
  os::rejoin(view.data() + MiB, page);
  EXPECT_EQ(mappings_in(view.data(), size), 3U) << "its protection differs";
  ASSERT_TRUE(os::protect(view.data(), size, page_protection::none));
  EXPECT_EQ(mappings_in(view.data(), size), 1U);
}

TEST_F(MemoryFile, PopulatingIsHarmless) {
  os::populate_for_reading(alias.data(), MiB);
  os::populate_for_writing(alias.data(), MiB);
  EXPECT_GE(bytes_used(), static_cast<std::int64_t>(MiB));
  EXPECT_EQ(alias.data()[MiB - 1], std::byte{0});
}

TEST_F(MemoryFile, ExcludedPagesAreAbsentInChildren) {
  os::exclude_from_fork(view.data(), MiB);
  EXPECT_EQ(exit_code_of([&] { return readable(view.data()) ? 1 : 0; }), 0);
  EXPECT_EQ(exit_code_of([&] { return readable(alias.data()) ? 0 : 1; }), 0);
  EXPECT_TRUE(readable(view.data()));
}

TEST_F(MemoryFile, IsClosedOnExec) { EXPECT_NE(::fcntl(file.get(), F_GETFD) & FD_CLOEXEC, 0); }

TEST(Populate, MakesPagesAndKeepsTheirContents) {
  // The range begins and ends inside huge pages, and already has contents.
  const auto file = os::create_memory_file("hpe-test", 8 * MiB);
  const os::reservation r(hint, 8 * MiB, 2 * MiB);
  os::map_file(r.data(), 8 * MiB, page_protection::read_write, file.get(), 0);
  std::memset(r.data() + 3 * MiB, 7, 4096);
  os::populate_with_huge_pages(r.data() + MiB, 6 * MiB);
  struct stat s {};
  ASSERT_EQ(::fstat(file.get(), &s), 0);
  EXPECT_EQ(static_cast<std::size_t>(s.st_blocks) * 512, 6 * MiB);
  for (std::size_t at = 0; at < 8 * MiB; at += 512)
    ASSERT_EQ(r.data()[at], at / 4096 == 3 * MiB / 4096 ? std::byte{7} : std::byte{0}) << at;
}

TEST(Populate, TellsWhetherMemoryLacksPagesAndMakesOnlyWholePages) {
  const std::size_t page = os::page_size();
  const os::reservation r(hint, 64 * page, page);
  ASSERT_TRUE(os::protect(r.data(), r.size(), page_protection::read_write));
  EXPECT_TRUE(os::lacks_pages(r.data(), r.size()));
  EXPECT_FALSE(os::lacks_pages(r.data() + 1, page)) << "no whole page";
  os::populate_whole_pages(r.data() + 1, 3 * page - 2);
  EXPECT_TRUE(os::lacks_pages(r.data(), page));
  EXPECT_FALSE(os::lacks_pages(r.data() + page, page));
  EXPECT_TRUE(os::lacks_pages(r.data() + 2 * page, page));
  std::memset(r.data(), 7, 48 * page);
  EXPECT_FALSE(os::lacks_pages(r.data(), r.size()));
  os::allow_huge_pages(r.data(), r.size());  // no whole huge page
  EXPECT_EQ(r.data()[48 * page - 1], std::byte{7});
}

TEST(Populate, TellsWhetherPagesOfAFileNeedPageFaults) {
  const std::size_t size = 64 * os::page_size();
  const auto file = os::create_memory_file("hpe-test", size);
  const std::vector<char> content(size, 'a');
  ASSERT_EQ(::pwrite(file.get(), content.data(), size, 0), static_cast<ssize_t>(size));
  const os::reservation r(hint, size, os::page_size());
  os::map_file(r.data(), size, page_protection::read_write, file.get(), 0);
  EXPECT_FALSE(os::lacks_pages(r.data(), size));
  EXPECT_TRUE(os::lacks_table_entries(r.data(), size));
  os::populate_for_reading(r.data(), size);
  EXPECT_FALSE(os::lacks_table_entries(r.data(), size));
}

// memcpy asks, and memcpy is no cancellation point.
TEST(Populate, IsAskedByThreadsThatAreCancelled) {
  static bool is_answered;
  is_answered = false;
  pthread_t thread{};
  const auto run = [](void*) -> void* {
    static std::byte memory[8192];
    std::memset(memory, 1, sizeof memory);
    ::pthread_cancel(::pthread_self());
    (void)os::lacks_table_entries(memory, sizeof memory);
    is_answered = true;
    ::pthread_testcancel();
    return nullptr;
  };
  ASSERT_EQ(::pthread_create(&thread, nullptr, run, nullptr), 0);
  void* result = nullptr;
  ASSERT_EQ(::pthread_join(thread, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  EXPECT_TRUE(is_answered);
}

TEST(MemoryFileErrors, NameTheFile) {
  try {
    const auto file = os::create_memory_file("hpe-huge", std::uint64_t{1} << 63);
    ADD_FAILURE() << "a file of 2^63 bytes was made";
  } catch (const error& e) {
    EXPECT_EQ(e.status(), HPE_ERROR_SYSTEM);
    EXPECT_NE(std::string(e.what()).find("hpe-huge"), std::string::npos) << e.what();
  }
}

// If every second page has another protection, each page is a separate mapping, until no more mappings are allowed.
TEST(Protect, SaysWhenMappingsRunOutAndRecovers) {
  const std::size_t limit = most_mappings();
  if (limit > 300000) GTEST_SKIP() << "this machine allows " << limit << " mappings, which takes too long to reach";
  EXPECT_EQ(exit_code_of([limit] {
              const std::size_t page = os::page_size();
              const std::size_t pages = limit + 100;
              const os::reservation r(hint, pages * page, page);
              if (!os::protect(r.data(), r.size(), page_protection::read)) return 2;
              bool ran_out = false;
              for (std::size_t i = 0; i < pages && !ran_out; i += 2)
                ran_out = !os::protect(r.data() + i * page, page, page_protection::none);
              if (!ran_out) return 3;
              // Giving the whole range one protection needs no further mapping.
              if (!os::protect(r.data(), r.size(), page_protection::read_write)) return 4;
              r.data()[0] = std::byte{1};
              return os::protect(r.data() + page, page, page_protection::none) ? 0 : 5;
            }),
            0);
}

TEST(Protect, OtherFailuresAreErrors) {
  alignas(4096) static char data[4096];
  EXPECT_THROW((void)os::protect(data + 1, 4096, page_protection::read), error);
}

TEST(FileDescriptor, ClosesTheDescriptorThatItOwns) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  {
    os::file_descriptor one(ends[0]);
    os::file_descriptor other(std::move(one));
    EXPECT_FALSE(one);
    EXPECT_EQ(other.get(), ends[0]);
    os::file_descriptor third(ends[1]);
    third = std::move(other);
    EXPECT_EQ(third.get(), ends[0]);
  }
  EXPECT_EQ(::fcntl(ends[0], F_GETFD), -1);
  EXPECT_EQ(::fcntl(ends[1], F_GETFD), -1);
}

}  // namespace
