// Tests of the common parts of all programs: exit statuses, checks of memory, progress, reports.

#include "apps/command_line/program.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/command_line/progress.h"
#include "apps/command_line/report.h"
#include "hpe/hpe.hpp"
#include "runtime/os/free_memory.h"

namespace hpe::command_line {
namespace {

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(program, exit_statuses) {
  const auto status = [](auto thrown) {
    testing::internal::CaptureStderr();
    const int result = guarded("hpe test", [&]() -> int { throw thrown; });
    EXPECT_EQ(testing::internal::GetCapturedStderr().rfind("hpe test: ", 0), 0U);
    return result;
  };
  EXPECT_EQ(guarded("hpe test", [] { return 7; }), 7);
  EXPECT_EQ(status(bad_input("no")), 2);
  EXPECT_EQ(status(error(HPE_ERROR_INVALID_ARGUMENT, "no")), 2);
  EXPECT_EQ(status(error(HPE_ERROR_DEVICE_LOST, "no")), 1);
  EXPECT_EQ(status(std::runtime_error("no")), 1);
  EXPECT_EQ(status(std::bad_alloc()), 1);
}

TEST(program, room_is_looked_for_before_memory_is_asked_for) {
  EXPECT_NO_THROW(check_room("elements", {.on_devices = 1e6, .on_host = 1e6}, 2));
  const auto complaint = [](const demand& need) {
    try {
      check_room("10 elements", need, 2);
    } catch (const bad_input& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(complaint({.on_devices = 0x1p60}), "10 elements: this needs 1.0 EiB on 2 devices, where 8.0 GiB are free");
  EXPECT_EQ(complaint({.on_host = 0x1p80}).rfind("10 elements: this needs 1048576.0 EiB on the host, where ", 0), 0U);
  EXPECT_EQ(devices_of(0), 2);
  EXPECT_EQ(devices_of(1), 1);
  EXPECT_THROW(static_cast<void>(devices_of(3)), bad_input);
}

/// A folder with files as in /proc and /sys.
class machine_of_test {
 public:
  machine_of_test() : root_(std::filesystem::path(testing::TempDir()) / ("hpe-machine-" + std::to_string(getpid()))) {
    write("proc/meminfo", "MemTotal: 16 kB\nMemAvailable: 8388608 kB\n");  // 8 GiB
  }
  ~machine_of_test() { std::filesystem::remove_all(root_); }
  machine_of_test(const machine_of_test&) = delete;
  machine_of_test& operator=(const machine_of_test&) = delete;

  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  /// Returns the free host memory that the error message for a demand of `bytes` states; empty if there is no message.
  [[nodiscard]] std::string free_for(double bytes) const {
    try {
      check_room("elements", {.on_host = bytes}, 1, root_);
    } catch (const bad_input& e) {
      const std::string text = e.what(), before = "on the host, where ", after = " are free";
      const std::size_t at = text.find(before) + before.size();
      return text.substr(at, text.find(after, at) - at);
    }
    return "";
  }

  [[nodiscard]] std::string limit() const { return hpe::os::free_memory(root_).limit; }

 private:
  std::filesystem::path root_;
};

TEST(program, limits_of_control_groups_count) {
  constexpr double gibi = 1 << 30, most = 7 * gibi;
  const machine_of_test machine;
  EXPECT_EQ(machine.free_for(most), "");
  EXPECT_EQ(machine.free_for(9 * gibi), "8.0 GiB");
  EXPECT_EQ(machine.limit(), "the machine");
  // Version 2 of control groups: the parent group has a limit, and the page cache that counts towards it can be freed.
  machine.write("proc/self/cgroup", "0::/job/step\n");
  machine.write("sys/fs/cgroup/job/step/memory.max", "max\n");
  machine.write("sys/fs/cgroup/job/step/memory.current", "1\n");
  EXPECT_EQ(machine.free_for(most), "");
  machine.write("sys/fs/cgroup/job/memory.max", "4294967296\n");
  machine.write("sys/fs/cgroup/job/memory.current", "3221225472\n");
  machine.write("sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_file 1073741824\nfile 5\n");
  EXPECT_EQ(machine.free_for(most), "2.0 GiB");
  EXPECT_EQ(machine.limit(), "control group /job");
  // In a container, the folder of the process's own group is the top folder.
  machine.write("sys/fs/cgroup/memory.max", "1073741824\n");
  machine.write("sys/fs/cgroup/memory.current", "2147483648\n");
  EXPECT_EQ(machine.free_for(most), "0 bytes");
  EXPECT_EQ(machine.limit(), "control group /");
  // Version 1 of control groups has a separate folder and other names.
  machine.write("proc/self/cgroup", "12:cpu,cpuacct:/\n4:memory:/job\nnonsense\n");
  EXPECT_EQ(machine.free_for(most), "");
  machine.write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "6442450944\n");
  machine.write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1073741824\n");
  EXPECT_EQ(machine.free_for(most), "5.0 GiB");
}

TEST(program, files_are_looked_at_before_the_work) {
  const std::string path = std::filesystem::path(testing::TempDir()) / ("hpe-writable-" + std::to_string(getpid()));
  EXPECT_NO_THROW(check_outputs({path}));
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_NO_THROW(check_outputs({"", "-", "-", ""}, {"", "-"}));
  EXPECT_THROW(check_outputs({"/nowhere/at/all"}), bad_input);
}

TEST(program, outputs_are_no_inputs_and_differ) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / ("hpe-outputs-" + std::to_string(getpid()));
  fs::create_directories(folder / "inside");
  const std::string in = folder / "in", out = folder / "out";
  std::ofstream(in) << "input";
  fs::create_symlink("in", folder / "link");
  fs::create_hard_link(in, folder / "other");
  fs::create_symlink("out", folder / "to-out");
  const auto complaint = [&](const std::vector<std::string>& outputs, const std::vector<std::string>& inputs) {
    try {
      check_outputs(outputs, inputs);
    } catch (const bad_input& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(complaint({out, "/dev/null", "/dev/null"}, {in, "/dev/null"}), "");
  EXPECT_EQ(complaint({in}, {in}), in + " is an input, so it cannot be an output too: choose another output");
  for (const fs::path& name : {folder / "link", folder / "other", folder / "inside/../in"})
    EXPECT_EQ(complaint({name}, {folder / "absent", in}),
              name.string() + " names the file " + in + ", which is an input: choose another output");
  for (const fs::path& name : {fs::path(out), folder / "to-out", folder / "inside/../out"})
    EXPECT_EQ(complaint({out, "", name}, {in}), "the outputs " + out + " and " + name.string() +
                                                    " are the same file: choose another name for one of them");
  EXPECT_EQ(text_of(in), "input");
  EXPECT_FALSE(fs::exists(out));
  fs::remove_all(folder);
}

TEST(program, the_ending_of_an_output_names_its_format) {
  using names = std::vector<std::string>;
  const auto named = [](const std::string& name) {
    return outputs_named(name, {".png", ".f32", ".npy"}, {".png", ".f32"});
  };
  EXPECT_EQ(named("a/b").names(), (names{"a/b.png", "a/b.f32"}));
  EXPECT_EQ(named("a.b/c").names(), (names{"a.b/c.png", "a.b/c.f32"}));
  EXPECT_EQ(named("a/b.npy").names(), names{"a/b.npy"});
  EXPECT_EQ(named("a/b.npy").stem, "a/b");
  EXPECT_TRUE(named("b.png").has(".png"));
  EXPECT_FALSE(named("b.png").has(".f32"));
  EXPECT_EQ(named("").names(), names{});
  try {
    static_cast<void>(named("b.jpg"));
    ADD_FAILURE() << "no format of this ending is written";
  } catch (const bad_input& e) {
    EXPECT_STREQ(
        e.what(),
        "--output b.jpg: the name must end in .png or .f32 or .npy; a name without an ending means NAME.png and "
        "NAME.f32");
  }
}

TEST(report, texts_that_are_not_utf_8_make_valid_json) {
  const std::string path = std::filesystem::path(testing::TempDir()) / ("hpe-latin-" + std::to_string(getpid()));
  write_json({"hpe test", "about", "caf\xe9", 1, {}, {}}, path);
  EXPECT_EQ(nlohmann::json::parse(text_of(path)).at("title"), "caf\ufffd");
  std::filesystem::remove(path);
}

/// A progress display that writes to a file and reads a clock that the test sets.
class progress_test : public testing::Test {
 protected:
  progress::place place(bool terminal) {
    return {.stream = file_, .terminal = terminal, .now = [this] {
              return std::chrono::steady_clock::time_point() + seconds_;
            }};
  }
  void after(double seconds) { seconds_ = std::chrono::milliseconds(static_cast<int>(1000 * seconds)); }
  std::string told() {
    std::string text(static_cast<std::size_t>(std::ftell(file_)), ' ');
    std::rewind(file_);
    EXPECT_EQ(std::fread(text.data(), 1, text.size(), file_), text.size());
    return text;
  }
  void TearDown() override { std::fclose(file_); }

 private:
  std::FILE* file_ = std::tmpfile();
  std::chrono::milliseconds seconds_{0};
};

TEST_F(progress_test, lines_every_five_seconds_with_rate_and_time_left) {
  {
    progress p("shot", 8, false, place(false));
    after(4);
    p.at(1);  // too soon
    after(10);
    p.at(2, "migrating");
    after(12);
    p.at(3);
    after(200);
    p.at(4.5);
    after(320);
    p.at(8);
  }
  EXPECT_EQ(told(),
            "2 of 8 shots, migrating, 25 %, 5 s a shot, 30 s left\n"
            "4 of 8 shots, 56 %, 44 s a shot, 2 min 36 s left\n"
            "8 of 8 shots in 5 min 20 s\n");
}

TEST_F(progress_test, the_last_line_comes_once) {
  progress p("shot", 2, false, place(false));
  after(6);
  p.at(1);
  after(12);
  p.at(2, "migrating");  // the end of the last step of the last shot
  p.at(2);
  EXPECT_EQ(told(), "1 of 2 shots, 50 %, 6 s a shot, 6 s left\n2 of 2 shots in 12 s\n");
}

TEST_F(progress_test, one_line_on_a_terminal_which_the_end_closes) {
  {
    progress p("step", 100, false, place(true));
    after(2);
    p.at(20);
    after(2.05);
    p.at(21);  // too soon
  }
  EXPECT_EQ(told(), "\r\033[K20 of 100 steps, 20 %, 10.0 steps/s, 8 s left\n");
}

TEST_F(progress_test, nothing_is_open_after_an_error) {
  try {
    progress p("step", 100, false, place(true));
    after(3);
    p.at(50);
    throw bad_input("the device died");
  } catch (const bad_input&) {
  }
  EXPECT_TRUE(told().ends_with("\n"));
}

TEST_F(progress_test, quiet_or_short_work_prints_nothing) {
  progress quiet("step", 2, true, place(true)), of_a_moment("step", 2, false, place(false));
  after(4);
  of_a_moment.at(2);
  after(100);
  quiet.at(1);
  quiet.at(2);
  EXPECT_EQ(told(), "");
}

TEST(report, names_where_the_figures_come_from) {
  const std::string path = std::filesystem::path(testing::TempDir()) / ("hpe-report-" + std::to_string(getpid()));
  write_json({"hpe test", "about \"it\"", "title", 3, {"soft"}, {{"time", 0.5, "ms"}}}, path);
  const std::string text = text_of(path);
  for (const std::string& part : {std::string("\"program\": \"hpe test\""), std::string("about \\\"it\\\""), machine(),
                                  commit(), std::string("\"value\": 0.5")})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  std::filesystem::remove(path);
  EXPECT_THROW(write_json({}, "/nowhere/at/all"), std::runtime_error);
  EXPECT_EQ(median({3, 1, 2}), 2);
}

}  // namespace
}  // namespace hpe::command_line
