// Tables of options: accepted words, refused words and their error messages, and the help text.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "apps/command_line/program.h"
#include "apps/command_line/wrapping.h"

namespace hpe::command_line {
namespace {

enum class colour { red, blue };

struct request {
  bool help = false, fast = false;
  std::int64_t count = 1;
  unsigned parts = 2;
  double width = 1, depth = 1;
  std::string name = "none", how = "auto", file;
  colour paint = colour::red;
};

std::vector<option> options_of(request& r, bool with_word = true) {
  std::vector<option> all{
      {"--count", "N", "how many", to_whole(r.count, 0, 100)},
      {"--parts", "N", "of it\nin two lines", to_whole(r.parts, 1)},
      {"--width", "METRES", "across", to_positive(r.width)},
      {"--depth", "METRES", "down", to_not_negative(r.depth)},
      {"--name", "TEXT", "what it is called", to_text(r.name)},
      {"--how", "HOW", "auto or hand", to_word(r.how, {"auto", "hand"})},
      {"--paint", "COLOUR", "red or blue", to_one_of<colour>(r.paint, {{"red", colour::red}, {"blue", colour::blue}})},
      {"--fast", "", "not slow", to_flag(r.fast)},
      help_option(r.help),
  };
  if (with_word) all.insert(all.begin(), {"SIZE|FILE", "", "which", to_text(r.file)});
  return all;
}

request read_words(std::vector<std::string> words, bool with_word = true) {
  words.insert(words.begin(), "program");
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  request r;
  read(options_of(r, with_word), static_cast<int>(argv.size()), argv.data());
  return r;
}

std::string complaint(const std::vector<std::string>& words, bool with_word = true) {
  try {
    read_words(words, with_word);
  } catch (const bad_input& e) {
    return e.what();
  }
  return "";
}

TEST(options, values_follow_or_are_attached) {
  const request r = read_words({"--count", "7", "--parts=3", "in", "--name=a=b", "--how", "hand", "--paint", "blue",
                                "--fast", "--width=1.5", "--depth", "0"});
  EXPECT_EQ(r.count, 7);
  EXPECT_EQ(r.parts, 3U);
  EXPECT_EQ(r.file, "in");
  EXPECT_EQ(r.name, "a=b");
  EXPECT_EQ(r.how, "hand");
  EXPECT_EQ(r.paint, colour::blue);
  EXPECT_TRUE(r.fast);
  EXPECT_EQ(r.width, 1.5);
  EXPECT_EQ(r.depth, 0);
  EXPECT_FALSE(r.help);
}

TEST(options, nothing_leaves_the_defaults_and_the_last_one_counts) {
  EXPECT_EQ(read_words({}).name, "none");
  EXPECT_EQ(read_words({"--count=1", "--count=2"}).count, 2);
  EXPECT_EQ(read_words({"--name", "--fast"}).name, "--fast") << "a value may look like an option";
  EXPECT_TRUE(read_words({"-h"}).help);
}

TEST(options, invalid_arguments_are_refused_with_the_valid_ones) {
  EXPECT_EQ(complaint({"--colour"}), "unknown option --colour; --help lists them");
  EXPECT_EQ(complaint({"--colour=red"}), "unknown option --colour; --help lists them");
  EXPECT_EQ(complaint({"--fast=yes"}), "--fast takes no value");
  EXPECT_EQ(complaint({"--fsat"}), "unknown option --fsat; is --fast meant?");
  EXPECT_EQ(complaint({"--fsat", "--count", "wrong"}), "unknown option --fsat; is --fast meant?");
  EXPECT_EQ(complaint({"--count"}), "--count needs a value: N");
  EXPECT_EQ(complaint({"--name="}), "--name needs a value: TEXT");
  EXPECT_EQ(complaint({"a", "b"}), "\"b\" is an unexpected argument; --help lists the arguments");
  EXPECT_EQ(complaint({"a"}, false),
            "\"a\" is not an option, and this command reads no file; --help lists the options");
  EXPECT_EQ(complaint({"--how", "foot"}), "--how foot: the possible values are auto, hand");
  EXPECT_EQ(complaint({"--paint", "green"}), "--paint green: the possible values are red, blue");
  EXPECT_EQ(complaint({"--width", "0"}), "--width 0: it must be more than 0");
  EXPECT_EQ(complaint({"--depth", "-1"}), "--depth -1: it must not be negative");
  for (const char* wrong : {"wide", "", "1x", "nan", "inf"})
    EXPECT_EQ(complaint({"--width", wrong}), "--width: \"" + std::string(wrong) + "\" is not a number");
  EXPECT_EQ(complaint({"--count", "101"}), "--count 101: expected a whole number from 0 to 100");
  EXPECT_EQ(complaint({"--parts", "0"}), "--parts 0: expected a whole number from 1");
}

TEST(options, whole_numbers) {
  EXPECT_EQ(whole_number("x", "0"), 0);
  EXPECT_EQ(whole_number("x", "2^28"), 1 << 28);
  EXPECT_EQ(whole_number("x", "3k"), 3072);
  EXPECT_EQ(whole_number("x", "3K"), 3072);
  EXPECT_EQ(whole_number("x", "64M"), 64 << 20);
  EXPECT_EQ(whole_number("x", "2G"), std::int64_t{2} << 30);
  EXPECT_EQ(whole_number("x", "2^62"), std::int64_t{1} << 62);
  EXPECT_EQ(whole_number("x", "9223372036854775807"), no_limit);
  EXPECT_EQ(whole_number("x", "-3", -5, 5), -3);
  for (const char* wrong : {"", "k", "-1", "1.5", "2^", "2^x", "2^-1", "3^2", "1kk", "-1k", "2^63", "99999999999G",
                            "9223372036854775808", " 1", "1 ", "0x10"})
    EXPECT_THROW(static_cast<void>(whole_number("x", wrong)), bad_input) << wrong;
}

TEST(options, a_word_is_a_size_or_a_file) {
  for (const char* size : {"5", "2^28", "64M", "4096x4096", "1k"}) EXPECT_TRUE(is_size(size)) << size;
  for (const char* file : {"in.npy", "./5", "5.raw", "", "m", "2^2/a"}) EXPECT_FALSE(is_size(file)) << file;
}

TEST(options, a_word_that_is_meant_as_a_number_is_no_file) {
  std::int64_t size = 0;
  std::string file;
  const setter set = to_size_or_file(to_whole(size, 1), file);
  for (const char* wrong : {"-5", "+5", "1.5", "1e6", "64m", "64MB", "8GiB", "0"}) {
    try {
      set("SIZE|FILE", wrong);
      ADD_FAILURE() << wrong;
    } catch (const bad_input& e) {
      EXPECT_EQ(e.what(),
                fmt::format("SIZE|FILE {}: expected a whole number from 1, such as 1000, 2^20 or 64M", wrong));
    }
  }
  EXPECT_EQ(file, "");
  for (const char* name : {"in.npy", "5.raw", "10keys", "2024-11-26.raw", "-"}) {
    set("SIZE|FILE", name);
    EXPECT_EQ(file, name);
  }
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(testing::TempDir());
  std::ofstream("1.5") << "a file";
  set("SIZE|FILE", "1.5");
  EXPECT_EQ(file, "1.5") << "there is such a file";
  std::filesystem::remove("1.5");
  std::filesystem::current_path(before);
}

TEST(options, a_program_follows_the_options) {
  const auto place = [](std::vector<std::string> words) {
    words.insert(words.begin(), "run");
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    request r;
    return read_before_program(options_of(r, false), static_cast<int>(argv.size()), argv.data());
  };
  EXPECT_EQ(place({"env"}), 1);
  EXPECT_EQ(place({"--fast", "env", "--fast", "--unknown"}), 2);
  EXPECT_EQ(place({"--count", "3", "--", "env", "--", "x"}), 4);
  EXPECT_EQ(place({"--", "--odd-name", "--help"}), 2);
  EXPECT_EQ(place({"--fast"}), 2);
  EXPECT_EQ(place({"--fast", "--"}), 3);
  EXPECT_THROW(static_cast<void>(place({"--fsat", "env"})), bad_input);
  EXPECT_THROW(static_cast<void>(place({"--count"})), bad_input);
  EXPECT_THROW(static_cast<void>(place({"--count=", "3", "env"})), bad_input) << "3 is not the value of --count";
  EXPECT_THROW(static_cast<void>(place({"--fast", "--count=", "--", "env"})), bad_input);
  EXPECT_EQ(place({"--count", "3", "env", "--count="}), 3) << "an argument of the program";
}

TEST(options, help_fits_the_terminal) {
  EXPECT_EQ(wrapped("one two three", 0, 8), "one two\nthree");
  EXPECT_EQ(wrapped("one two three", 4, 12), "one two\n    three");
  EXPECT_EQ(wrapped("longer-than-a-line short", 2, 10), "longer-than-a-line\n  short");
  EXPECT_EQ(wrapped("first line\nsecond", 1, 20), "first line\n second");
  EXPECT_EQ(wrapped("", 3, 20), "");
  ::setenv("COLUMNS", "50", 1);
  EXPECT_EQ(columns(), 50U);
  ::setenv("COLUMNS", "3", 1);
  EXPECT_EQ(columns(), 40U) << "the least";
  ::setenv("COLUMNS", "wide", 1);
  EXPECT_GE(columns(), 40U);
  ::setenv("COLUMNS", "40", 1);
  ::testing::internal::CaptureStdout();
  print_help(
      "Usage: program [options]\n\nA sentence that is longer than forty columns\nand goes on.\n\n"
      "  --row  stays as it is, however long it may be\n");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(),
            "Usage: program [options]\n\nA sentence that is longer than forty\ncolumns and goes on.\n\n"
            "  --row  stays as it is, however long it may be\n");
  ::unsetenv("COLUMNS");
}

TEST(options, help_has_two_columns) {
  request r;
  const std::string help = lines_of_help(options_of(r, false));
  EXPECT_NE(help.find("  --count N       how many\n"), std::string::npos) << help;
  EXPECT_NE(help.find("  --parts N       of it\n                  in two lines\n"), std::string::npos) << help;
  EXPECT_NE(help.find("  --fast          not slow\n"), std::string::npos) << help;
  // A row that is too long for the first column.
  const option wide{"--width-of-a-cell", "KILOMETRES", "across", to_positive(r.width)};
  EXPECT_NE(lines_of_help({help_option(r.help), wide}).find("  --width-of-a-cell KILOMETRES\n          across\n"),
            std::string::npos);
}

}  // namespace
}  // namespace hpe::command_line
