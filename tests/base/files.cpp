// The folders and files of a process: the cache folder, files in hpe's folders, and small results in files.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/cache_file.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/own_process.h"
#include "tests/temporary_folder.h"

namespace {

namespace fs = std::filesystem;
using hpe::cache_file;

/// While the object exists, a variable of the environment has this value, or none.
class with_variable {
 public:
  with_variable(const char* name, const char* value) : name_(name) {
    if (const char* const found = std::getenv(name)) before_ = found;
    set(value);
  }
  with_variable(const with_variable&) = delete;
  with_variable& operator=(const with_variable&) = delete;
  ~with_variable() { set(before_ ? before_->c_str() : nullptr); }

 private:
  void set(const char* value) const { value != nullptr ? ::setenv(name_, value, 1) : ::unsetenv(name_); }
  const char* name_;
  std::optional<std::string> before_;
};

std::vector<std::string> lines_of(const fs::path& file) {
  std::ifstream stream(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(own_process, caches_are_in_the_folder_of_the_user) {
  const auto folder = [](const char* wished, const char* home) {
    const with_variable first("XDG_CACHE_HOME", wished), second("HOME", home);
    return hpe::own_cache_folder();
  };
  EXPECT_EQ(folder("/x", "/home/u"), "/x/hpe");
  EXPECT_EQ(folder("x", "/home/u"), "/home/u/.cache/hpe") << "a relative path is ignored";
  EXPECT_EQ(folder("", "/home/u"), "/home/u/.cache/hpe");
  EXPECT_EQ(folder(nullptr, "/home/u"), "/home/u/.cache/hpe");
  EXPECT_EQ(folder(nullptr, "u"), fs::path());
  EXPECT_EQ(folder(nullptr, ""), fs::path());
  EXPECT_EQ(folder(nullptr, nullptr), fs::path());
  EXPECT_EQ(folder("/x", nullptr), "/x/hpe");
}

TEST(own_process, files_are_beside_the_program_or_the_message_tells_where_they_were_sought) {
  const fs::path program = fs::read_symlink("/proc/self/exe");
  const std::string name = program.filename();
  const fs::path parent = program.parent_path();
  EXPECT_EQ(hpe::find_own_file(name, {"."}, HPE_ERROR_NOT_FOUND, "HPE_X"), program);
  EXPECT_EQ(hpe::find_own_file(name, {"../nowhere", "."}, HPE_ERROR_NOT_FOUND, "HPE_X"), program)
      << "the second folder";
  try {
    static_cast<void>(hpe::find_own_file("no-such-file", {".", "../nowhere"}, HPE_ERROR_INITIALIZATION, "HPE_X"));
    FAIL();
  } catch (const hpe::error& e) {
    EXPECT_EQ(e.status(), HPE_ERROR_INITIALIZATION);
    const std::string words = e.what();
    EXPECT_NE(words.find("no-such-file was not found in " + parent.string()), std::string::npos) << words;
    EXPECT_NE(words.find(" " + (parent.parent_path() / "nowhere").string()), std::string::npos) << words;
    EXPECT_NE(words.find("set HPE_X"), std::string::npos) << words;
  }
  EXPECT_THROW(static_cast<void>(hpe::find_own_file("..", {"."}, HPE_ERROR_NOT_FOUND, "HPE_X")), hpe::error)
      << "a folder is no file";
}

TEST(cache_file, keeps_one_line_for_each_key) {
  const temporary_folder place;
  const fs::path folder = place / "a/b";  // made when it is needed
  const cache_file first(folder, "times", "one key"), second(folder, "times", "another key");
  EXPECT_EQ(first.load(), std::nullopt);
  first.store("12 13");
  EXPECT_EQ(first.load(), "12 13");
  EXPECT_EQ(second.load(), std::nullopt);
  second.store("");
  EXPECT_EQ(second.load(), "") << "an empty text is a text";
  first.store("14");
  EXPECT_EQ(cache_file(folder, "times", "one key").load(), "14") << "the last text";
  EXPECT_EQ(cache_file(folder, "rates", "one key").load(), std::nullopt) << "another name";
  std::size_t files = 0;
  for (const auto& each : fs::directory_iterator(folder)) {
    ++files;
    EXPECT_TRUE(each.path().filename().string().starts_with("times-")) << each.path();
    EXPECT_EQ(lines_of(each.path()).size(), 2U);
  }
  EXPECT_EQ(files, 2U) << "files under other names are renamed";
}

TEST(cache_file, keys_are_one_line_too) {
  const temporary_folder place;
  const cache_file two_lines(place.path(), "n", "a\nb");
  two_lines.store("text");
  EXPECT_EQ(two_lines.load(), "text");
  EXPECT_EQ(cache_file(place.path(), "n", "a b").load(), "text");
}

TEST(cache_file, files_of_other_content_are_ignored) {
  const temporary_folder place;
  const cache_file kept(place.path(), "n", "key");
  kept.store("text");
  const fs::path file = fs::directory_iterator(place.path())->path();
  for (const char* const content : {"", "key", "key\n", "other\ntext\n", "ke\ntext\n"}) {
    std::ofstream(file) << content;
    EXPECT_EQ(kept.load(), std::nullopt) << content;
  }
  std::ofstream(file) << "key\ntext";
  EXPECT_EQ(kept.load(), "text");
}

TEST(cache_file, stores_nothing_without_a_folder_or_where_it_cannot_write) {
  const temporary_folder place;
  const cache_file none({}, "n", "key");
  none.store("text");
  EXPECT_EQ(none.load(), std::nullopt);
  std::ofstream(place / "file") << "x";
  const cache_file below_a_file(place / "file", "n", "key");
  below_a_file.store("text");
  EXPECT_EQ(below_a_file.load(), std::nullopt);
  EXPECT_EQ(lines_of(place / "file"), std::vector<std::string>{"x"});
  // The final name is a folder with content, which no file replaces; the file under the other name is removed.
  const cache_file blocked(place / "c", "n", "key");
  blocked.store("text");
  const fs::path file = fs::directory_iterator(place / "c")->path();
  fs::remove(file);
  fs::create_directories(file / "inner");
  blocked.store("text");
  EXPECT_EQ(blocked.load(), std::nullopt);
  EXPECT_EQ(std::distance(fs::directory_iterator(place / "c"), fs::directory_iterator()), 1);
}

TEST(cache_file, only_a_text_that_is_not_stored_is_told) {
  const temporary_folder place;
  hpe::set_log_level(hpe::log_level::debug);
  testing::internal::CaptureStderr();
  cache_file(place.path(), "n", "key").store("text");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  std::ofstream(place / "file") << "x";
  testing::internal::CaptureStderr();
  cache_file(place / "file", "n", "key").store("text");
  const std::string told = testing::internal::GetCapturedStderr();
  hpe::set_log_level(hpe::log_level::warn);
  EXPECT_TRUE(told.starts_with("hpe: " + (place / "file") + "/n-")) << told;
  EXPECT_NE(told.find(" is not written: "), std::string::npos) << told;
}

TEST(cache_file, the_machine_is_always_the_same) {
  EXPECT_EQ(cache_file::machine(), cache_file::machine());
  std::ifstream id("/etc/machine-id");
  std::string line;
  std::getline(id, line);
  EXPECT_TRUE(cache_file::machine().starts_with(line + "; ")) << cache_file::machine();
}

TEST(output_files, are_named_by_process_or_rank) {
  using hpe::name_of_output;
  EXPECT_EQ(name_of_output("t.json", 42, nullptr), "t.json");
  EXPECT_EQ(name_of_output("t-%p.json", 42, "3"), "t-42.json");
  EXPECT_EQ(name_of_output("t.json", 42, "3"), "t.3.json");
  EXPECT_EQ(name_of_output("a.b/t", 42, "3"), "a.b/t.3");
  EXPECT_EQ(name_of_output(".hidden", 42, "3"), ".hidden.3");
  for (const char* const variable : hpe::rank_variables) ::unsetenv(variable);
  EXPECT_EQ(name_of_output("%p"), std::to_string(::getpid()));
  ::setenv(hpe::rank_variables.back(), "7", 1);
  EXPECT_EQ(name_of_output("t.json"), "t.7.json");
}

TEST(start_of_own_process, is_when_the_process_was_created) {
  using namespace std::chrono_literals;
  const auto now = [] { return std::chrono::system_clock::now().time_since_epoch(); };
  const std::chrono::nanoseconds start(hpe::start_of_own_process());
  EXPECT_LT(start, now());
  EXPECT_GT(start, now() - 10min);
  std::this_thread::sleep_for(300ms);
  const auto created = now();
  const pid_t child = ::fork();
  if (child == 0) {
    const std::chrono::nanoseconds its(hpe::start_of_own_process());
    std::_Exit(its > created - 50ms && its < now() ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
