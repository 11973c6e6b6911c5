// Compiled kernels that are stored on disk. They are used again, also by processes with other addresses. Files that are
// damaged, or that other users could have written, are replaced.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "runtime/base/log.h"
#include "tests/ptx/kernel_runner.h"
#include "tests/temporary_folder.h"

namespace hpe::ptx {
namespace {

namespace fs = std::filesystem;
using test::engine_kind;
using test::kernel_runner;

constexpr std::uint64_t plenty = 64 << 20;

// The kernel uses everything whose address differs between processes: variables, a function of hpe (vprintf, sin), a
// function pointer, a place in shared memory after a barrier, and an instruction (in a trap).
std::string text_with(unsigned added) {
  return R"(.version 8.6
.target sm_75
.address_size 64
.extern .func (.param .b32 result) vprintf (.param .b64 format, .param .b64 arguments);
.visible .global .align 4 .u32 counter = 5;
.visible .const .align 4 .u32 step = 2;
.global .align 1 .b8 line[4] = {37, 117, 10, 0};
.visible .func (.param .b32 out) next(.param .b32 in) {
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [in];
  add.u32 %r2, %r1, )" +
         std::to_string(added) + R"(;
  st.param.b32 [out], %r2;
  ret;
}
.visible .global .align 8 .u64 pointer = next;
.visible .entry work(.param .u64 to) {
  .local .align 8 .b8 arguments[8];
  .shared .align 4 .b8 place[4];
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  .reg .f32 %f<4>;
  .reg .pred %p<2>;
  ld.param.u64 %rd1, [to];
  ld.const.u32 %r1, [step];
  mov.u64 %rd2, counter;
  atom.global.add.u32 %r2, [%rd2], %r1;
  ld.global.u64 %rd3, [pointer];
  {
    .param .b32 in;
    st.param.b32 [in], %r2;
    .param .b32 out;
    prototype: .callprototype (.param .b32 _) _ (.param .b32 _);
    call (out), %rd3, (in), prototype;
    ld.param.b32 %r3, [out];
  }
  mov.f32 %f1, 0f3F000000;
  sin.approx.f32 %f2, %f1;
  cvt.rzi.u32.f32 %r4, %f2;
  add.u32 %r3, %r3, %r4;
  st.shared.u32 [place], %r3;
  bar.sync 0;
  ld.shared.u32 %r5, [place];
  st.local.u32 [arguments], %r5;
  mov.u64 %rd4, arguments;
  cvta.local.u64 %rd4, %rd4;
  mov.u64 %rd5, line;
  cvta.global.u64 %rd5, %rd5;
  {
    .param .b64 p0;
    st.param.b64 [p0], %rd5;
    .param .b64 p1;
    st.param.b64 [p1], %rd4;
    .param .b32 r;
    call.uni (r), vprintf, (p0, p1);
  }
  st.global.u32 [%rd1], %r5;
  ret;
}
)";
}

class kept_kernels : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::has_compiler) GTEST_SKIP() << "built without LLVM";
    kept_ = {folder_ / "kernels", plenty};
  }

  // Runs the kernel of a new program, and checks all its effects.
  void run(unsigned added = 100, warp_order order = warp_order::independent) {
    kernel_runner program({text_with(added)}, engine_kind::compiler, order, kept_);
    auto* const to = program.upload(std::vector<std::uint32_t>(1));
    ASSERT_FALSE(program.launch("work", {{1}, {1}}, to));
    EXPECT_EQ(*to, 5 + added);
    EXPECT_EQ(*static_cast<std::uint32_t*>(program.address_of("counter")), 7U);
    EXPECT_EQ(program.printed(), std::to_string(5 + added) + "\n");
    const auto stopped = program.launch("work", {{1}, {1}}, reinterpret_cast<char*>(to) + 1);
    ASSERT_TRUE(stopped);
    EXPECT_EQ(stopped->why, trap::reason::misaligned);
    EXPECT_NE(stopped->message().find("st.global.u32 [%rd1], %r5;"), std::string::npos) << stopped->message();
  }

  [[nodiscard]] std::vector<fs::path> files() const {
    std::vector<fs::path> all;
    for (const auto& entry : fs::directory_iterator(kept_.folder)) all.push_back(entry.path());
    return all;
  }
  [[nodiscard]] fs::path only_file() const {
    const auto all = files();
    EXPECT_EQ(all.size(), 1U);
    return all.at(0);
  }
  // Returns the inode number of a file. A file that replaces another file has another inode number.
  static ino_t number_of(const fs::path& file) {
    struct stat about {};
    EXPECT_EQ(::stat(file.c_str(), &about), 0);
    return about.st_ino;
  }
  // Runs the kernel, and expects that this run replaces the kernel's file and that the next run uses the new file.
  void expect_replaced() {
    const fs::path file = only_file();
    const std::string damaged = test::read_file(file);
    // As long as this link exists, no other file can get the inode number of the old file.
    fs::create_hard_link(file, folder_ / "old");
    const ino_t before = number_of(file);
    run();
    const ino_t after = number_of(file);
    EXPECT_NE(after, before);
    run();
    EXPECT_EQ(number_of(file), after);
    fs::remove(folder_ / "old");
  }

  const temporary_folder folder_;
  kernel_store kept_;
};

TEST_F(kept_kernels, AreUsedByTheNextProgramWithTheSameText) {
  run();
  const fs::path file = only_file();
  const ino_t number = number_of(file);
  run();
  EXPECT_EQ(number_of(only_file()), number);
  run(200);
  EXPECT_EQ(files().size(), 2U);
  run(100, warp_order::lockstep);
  EXPECT_EQ(files().size(), 3U);
  EXPECT_EQ(number_of(file), number);
  struct stat about {};
  ASSERT_EQ(::stat(file.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777U, 0600U);
  ASSERT_EQ(::stat(kept_.folder.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777U, 0700U);
}

TEST_F(kept_kernels, ThatAreDamagedAreReplaced) {
  run();
  const fs::path file = only_file();
  const std::string whole = test::read_file(file);
  const auto write = [&](const std::string& content) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << content;
    expect_replaced();
  };
  std::string changed = whole;
  changed[changed.size() / 2] ^= 1;
  write(changed);
  changed = whole;
  changed[20] ^= 1;  // the key
  write(changed);
  write(whole.substr(0, whole.size() - 1));
  write(whole.substr(0, 10));
  write("");
  write(whole + "more");
}

TEST_F(kept_kernels, ThatOthersCouldHaveWrittenAreReplaced) {
  run();
  ::chmod(only_file().c_str(), 0660);
  expect_replaced();
  ::chmod(only_file().c_str(), 0602);
  expect_replaced();
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(only_file().c_str(), 65534, 65534), 0);
    expect_replaced();
  }
}

TEST_F(kept_kernels, OfAnotherTextDoNotCount) {
  run(200);
  const std::string other = test::read_file(only_file());
  fs::remove(only_file());
  run();
  std::ofstream(only_file(), std::ios::binary | std::ios::trunc) << other;
  expect_replaced();
}

TEST_F(kept_kernels, StayBelowTheirLimit) {
  run();
  const std::uint64_t one = fs::file_size(only_file());
  const fs::path first = only_file();
  // A file that a killed process has left.
  const fs::path rest = fs::path(kept_.folder) / "kernel-12345678.part";
  std::ofstream(rest) << std::string(one, 'x');
  fs::last_write_time(rest, fs::file_time_type::clock::now() - std::chrono::hours(48));
  std::ofstream(fs::path(kept_.folder) / "notes") << std::string(10 * one, 'x');
  kept_.most_bytes = 4 * one + one / 2;
  for (unsigned added = 1; added <= 8; ++added) {
    run(added);
    fs::last_write_time(first, fs::file_time_type::clock::now() - std::chrono::hours(24));
    run();  // uses the file, so the file is no longer the least recently used one
    std::uint64_t all = 0;
    for (const fs::path& file : files())
      if (file.filename() != "notes") all += fs::file_size(file);
    EXPECT_LE(all, kept_.most_bytes);
  }
  EXPECT_TRUE(fs::exists(first));
  EXPECT_FALSE(fs::exists(rest));
  EXPECT_TRUE(fs::exists(fs::path(kept_.folder) / "notes"));
  EXPECT_GE(files().size(), 4U);
}

TEST_F(kept_kernels, AreSharedByProcesses) {
  std::vector<pid_t> children;
  for (unsigned n = 0; n < 4; ++n) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    for (unsigned added = 1; added <= 3; ++added) run(added);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  for (const pid_t child : children) {
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(files().size(), 3U);
}

// A process reports only the first reason for which it does not keep compiled kernels, so each case runs in its own
// process.
TEST_F(kept_kernels, AreNotNeeded) {
  const auto told_in = [&](const std::string& folder, rlim_t largest_file = RLIM_INFINITY) {
    testing::internal::CaptureStderr();
    const pid_t child = ::fork();
    if (child == 0) {
      set_log_level(log_level::info);
      const rlimit limit{largest_file, largest_file};  // fails like a full disk
      ::signal(SIGXFSZ, SIG_IGN);
      ::setrlimit(RLIMIT_FSIZE, &limit);
      kept_.folder = folder;
      run(1);
      run(2);
      ::_exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    return testing::internal::GetCapturedStderr();
  };
  std::ofstream(folder_ / "file") << "x";
  EXPECT_EQ(told_in(folder_ / "file/kernels"),
            "hpe: compiled kernels are not kept in " + folder_.path() + "/file/kernels: Not a directory\n");
  fs::create_directory(folder_ / "open");
  ::chmod((folder_ / "open").c_str(), 0777);
  EXPECT_EQ(told_in(folder_ / "open"),
            "hpe: compiled kernels are not kept in " + folder_.path() + "/open: other users may write there\n");
  EXPECT_TRUE(fs::is_empty(folder_ / "open"));
  EXPECT_EQ(told_in("/proc/kernels"),
            "hpe: compiled kernels are not kept in /proc/kernels: No such file or directory\n");
  EXPECT_EQ(told_in(folder_ / "full", 1024),
            "hpe: compiled kernels are not kept in " + folder_.path() + "/full: File too large\n");
  EXPECT_TRUE(fs::is_empty(folder_ / "full"));
  kept_.most_bytes = 0;
  EXPECT_EQ(told_in(folder_ / "off"), "");
  EXPECT_FALSE(fs::exists(folder_ / "off"));
}

}  // namespace
}  // namespace hpe::ptx
