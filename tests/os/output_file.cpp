// A file is not changed before the new bytes are complete, and output_file never replaces device files, FIFOs or links
// by files.

#include "runtime/os/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "hpe/error.hpp"

namespace {

namespace fs = std::filesystem;
using hpe::os::output_file;
using hpe::os::write_file;

class OutputFile : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }
  [[nodiscard]] std::string made(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
  static std::string text_of(const std::string& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  [[nodiscard]] std::ptrdiff_t files() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }
  static struct stat status_of(const std::string& file) {
    struct stat status {};
    EXPECT_EQ(::lstat(file.c_str(), &status), 0) << file;
    return status;
  }
  static std::string complaint(const std::string& file, const std::string& text = "new") {
    try {
      write_file(file, text);
    } catch (const hpe::error& e) {
      return e.what();
    }
    return "";
  }

 private:
  const fs::path folder_ = fs::path(testing::TempDir()) / ("hpe-output-" + std::to_string(::getpid()));
};

/// While an object exists, files are opened as by a user without special rights, because root may open every file.
class without_rights {
 public:
  without_rights() { EXPECT_EQ(::seteuid(::getuid() == 0 ? nobody : ::getuid()), 0); }
  ~without_rights() { EXPECT_EQ(::seteuid(::getuid()), 0); }
  without_rights(const without_rights&) = delete;
  without_rights& operator=(const without_rights&) = delete;

  static constexpr uid_t nobody = 65534;
};

/// While an object exists, files of this process may have at most `bytes` bytes.
class file_limit {
 public:
  explicit file_limit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{bytes, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  }
  ~file_limit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    static_cast<void>(std::signal(SIGXFSZ, handler_));
  }
  file_limit(const file_limit&) = delete;
  file_limit& operator=(const file_limit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int) = std::signal(SIGXFSZ, SIG_IGN);
};

constexpr int no_right = 77;

/// Runs the body in a child process in which /proc is empty. Returns 0 if the body's expectations hold, or no_right if
/// the user may not mount files.
int without_proc(const std::function<void()>& body) {
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool alone = ::unshare(CLONE_NEWNS) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
    if (!alone || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", "/proc", "tmpfs", 0, nullptr) != 0)
      ::_exit(no_right);
    body();
    std::fflush(stdout);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(OutputFile, TakesItsNameWhenItIsClosed) {
  output_file file(path("a"));
  file.write("one ");
  file.write("two");
  EXPECT_FALSE(fs::exists(path("a")));
  file.close();
  EXPECT_EQ(text_of(path("a")), "one two");
  EXPECT_EQ(files(), 1);
  const mode_t mask = ::umask(0);
  ::umask(mask);
  EXPECT_EQ(status_of(path("a")).st_mode & 0777U, 0666U & ~mask);
}

TEST_F(OutputFile, LeavesTheOldFileUntilThen) {
  const std::string name = made("a", "old and longer");
  ASSERT_EQ(::chmod(name.c_str(), 0640), 0);
  {
    output_file file(name);
    file.write("new");
    EXPECT_EQ(text_of(name), "old and longer");
  }
  EXPECT_EQ(text_of(name), "old and longer") << "the output file was never closed";
  EXPECT_EQ(files(), 1);
  write_file(name, "new");
  EXPECT_EQ(text_of(name), "new");
  EXPECT_EQ(status_of(name).st_mode & 0777U, 0640U);
  EXPECT_EQ(files(), 1);
}

TEST_F(OutputFile, AFullDiskLeavesTheOldFile) {
  const std::string name = made("a", "old");
  const file_limit limit(1000);
  EXPECT_EQ(complaint(name, std::string(1001, 'x')), "cannot write " + name + ": File too large");
  {
    output_file file(name);  // the size of the file is not known in advance
    EXPECT_THROW(file.write(std::string(1001, 'x')), hpe::error);
  }
  EXPECT_EQ(text_of(name), "old");
  EXPECT_EQ(files(), 1);
  EXPECT_EQ(complaint(name, std::string(1000, 'x')), "");
}

TEST_F(OutputFile, FollowsSymbolicLinks) {
  const std::string target = made("target", "old");
  fs::create_symlink("target", path("near"));
  fs::create_symlink(path("near"), path("far"));
  write_file(path("far"), "new");
  EXPECT_TRUE(fs::is_symlink(path("far")));
  EXPECT_TRUE(fs::is_symlink(path("near")));
  EXPECT_EQ(text_of(target), "new");
  EXPECT_EQ(output_file::behind_links(path("far")), target);
  fs::create_symlink("absent", path("dangling"));
  write_file(path("dangling"), "made");
  EXPECT_EQ(text_of(path("absent")), "made");
  fs::create_symlink("loop", path("loop"));
  EXPECT_NE(complaint(path("loop")).find("symbolic links"), std::string::npos);
}

TEST_F(OutputFile, WritesAllNamesOfAFile) {
  const std::string name = made("a", "old and longer");
  fs::create_hard_link(name, path("b"));
  EXPECT_EQ(complaint(name, "new"), "");
  EXPECT_EQ(text_of(path("b")), "new");
  EXPECT_EQ(status_of(name).st_ino, status_of(path("b")).st_ino);
  const file_limit limit(1000);
  EXPECT_NE(complaint(name, std::string(1001, 'x')), "");
  EXPECT_EQ(text_of(path("b")), "new") << "disk space is reserved before a byte is overwritten";
}

TEST_F(OutputFile, WritesInPlaceWhereItMayMakeNoFile) {
  const std::string folder = path("closed"), name = folder + "/a";
  fs::create_directory(folder);
  std::ofstream(name) << "old and longer";
  ASSERT_EQ(::chmod(name.c_str(), 0666), 0);
  ASSERT_EQ(::chmod(folder.c_str(), 0555), 0);
  {
    const without_rights here;
    EXPECT_EQ(complaint(name), "");
    EXPECT_NE(complaint(folder + "/other"), "");
  }
  EXPECT_EQ(text_of(name), "new");
  ASSERT_EQ(::chmod(folder.c_str(), 0755), 0);
}

TEST_F(OutputFile, AFileOfAnotherUserStaysHis) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make files of others";
  const std::string name = made("a", "old");
  ASSERT_EQ(::chown(name.c_str(), without_rights::nobody, 0), 0);
  write_file(name, "new");
  EXPECT_EQ(text_of(name), "new");
  EXPECT_EQ(status_of(name).st_uid, without_rights::nobody);
}

TEST_F(OutputFile, ReadOnlyFilesAndFoldersAreRefused) {
  const std::string name = made("a", "old");
  ASSERT_EQ(::chmod(name.c_str(), 0444), 0);
  {
    const without_rights here;
    EXPECT_EQ(complaint(name), "cannot write " + name + ": Permission denied");
  }
  EXPECT_EQ(text_of(name), "old");
  EXPECT_NE(complaint(testing::TempDir()).find("Is a directory"), std::string::npos);
  EXPECT_NE(complaint(path("none/a")).find("No such file"), std::string::npos);
  EXPECT_NE(complaint("").find("No such file"), std::string::npos);
}

TEST_F(OutputFile, DevicesAndPipesAreWrittenAndStay) {
  EXPECT_EQ(complaint("/dev/full"), "cannot write /dev/full: No space left on device");
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
  EXPECT_EQ(complaint("/dev/null"), "");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  const std::string pipe = path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  { const output_file unused(pipe); }  // does not wait for a reader
  std::string got;
  std::thread reader([&] { got = text_of(pipe); });
  write_file(pipe, "through a pipe");
  reader.join();
  EXPECT_EQ(got, "through a pipe");
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST_F(OutputFile, AnOpenFileIsWrittenAtItsEnd) {
  const std::string name = made("a", "said before, ");
  const int file = ::open(name.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(file, 0);
  fs::create_symlink("/proc/self/fd/" + std::to_string(file), path("like-dev-stdout"));
  write_file(path("like-dev-stdout"), "and now");
  ::close(file);
  EXPECT_EQ(text_of(name), "said before, and now");
}

TEST_F(OutputFile, TheLongestNameIsPossible) {
  const std::string name = path(std::string(255, 'n'));
  write_file(name, "new");
  EXPECT_EQ(text_of(name), "new");
  EXPECT_EQ(files(), 1);
}

// Only by its name in /proc can a file without a name receive one.
TEST_F(OutputFile, WithoutProcTheNewFileHasANameUntilItIsCompleteOrFails) {
  const std::string name = made("a", "old");
  const int status = without_proc([&] {
    {
      output_file file(name, 3);
      file.write("new");
      EXPECT_EQ(files(), 2);
    }
    EXPECT_EQ(text_of(name), "old") << "the output file was never closed";
    EXPECT_EQ(files(), 1);
    {
      const file_limit limit(1000);
      EXPECT_EQ(complaint(name, std::string(1001, 'x')), "cannot write " + name + ": File too large");
      EXPECT_EQ(files(), 1) << "space could not be reserved";
      output_file file(name);
      EXPECT_THROW(file.write(std::string(1001, 'x')), hpe::error);
      EXPECT_EQ(files(), 1) << "a write has failed";
    }
    EXPECT_EQ(text_of(name), "old");
    EXPECT_EQ(complaint(name), "");
    EXPECT_EQ(text_of(name), "new");
    EXPECT_EQ(files(), 1);
  });
  if (status == no_right) GTEST_SKIP() << "this user may not mount files";
  EXPECT_EQ(status, 0);
}

}  // namespace
