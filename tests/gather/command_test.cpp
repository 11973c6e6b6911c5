// Runs `hpe gather` and `hpe scatter` as users do, and tests the files that they read.

#include "tests/command.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "apps/files/element_file.h"
#include "apps/gather/fit.h"
#include "apps/gather/gather_main.h"
#include "apps/gather/index_file.h"

namespace {

using command_test::contains;
using command_test::outcome;
using hpe::gather::bad_input;
using hpe::gather::indices_of_json;
using list = std::vector<std::uint64_t>;

class gather_command : public ::testing::Test {
 protected:
  gather_command() : folder_(std::filesystem::path(::testing::TempDir()) / ("hpe-gather-" + std::to_string(getpid()))) {
    // Writes the model's parameters to the cache, because hpe would otherwise measure them.
    ::setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
    hpe::gather::parameters m;
    m.sequential = {{1, 1e-10}};
    std::filesystem::create_directories(folder_ / "hpe");
    std::ofstream(hpe::gather::cache_file(0)) << as_json(m);
  }
  ~gather_command() override {
    ::unsetenv("XDG_CACHE_HOME");
    std::filesystem::remove_all(folder_);
  }

  static outcome run(std::vector<std::string> words) {
    const auto main_function = words.front() == "gather" ? gather_main : scatter_main;
    return command_test::call(main_function, std::move(words));
  }
  static void refused(const std::vector<std::string>& words, const std::string& because) {
    const outcome o = run(words);
    EXPECT_EQ(o.status, 2) << o.out << o.err;
    EXPECT_TRUE(contains(o.err, because)) << o.err;
  }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path(name)) << text; }
  template <class T>
  void write(const std::string& name, const std::string& type, const std::vector<T>& values) const {
    hpe::files::write(path(name), type, {values.size()}, values.data(), sizeof(T));
  }

 private:
  const std::filesystem::path folder_;
};

TEST_F(gather_command, every_method_gives_a_right_result) {
  for (const char* verb : {"gather", "scatter"})
    for (const char* how : {"single-pass", "multi-pass", "partitioned"})
      for (const char* bytes : {"4", "16"}) {
        const outcome o = run({verb, "20001", "--bytes", bytes, "--method", how, "--repeats=1"});
        EXPECT_EQ(o.status, 0) << o.err;
        EXPECT_TRUE(contains(o.out, "the result is right")) << o.out;
      }
  EXPECT_TRUE(
      contains(run({"gather", "20001", "--host", "--devices=1", "--repeats=1", "--explain"}).out, "in host memory"));
  EXPECT_TRUE(contains(run({"scatter", "20001", "--table=300", "--duplicates=last", "--repeats=1", "--explain"}).out,
                       "does not keep the order"));
  EXPECT_EQ(run({"scatter", "20001", "--partitions=64", "--repeats=1"}).status, 0);
}

TEST_F(gather_command, files_come_and_go) {
  const std::vector<float> table{0, 10, 20, 30, 40, 50};
  write("table.npy", "f32", table);
  write<std::int64_t>("index.npy", "i64", {5, 0, 0, 3});
  const outcome o = run({"gather", path("index.npy"), "--data", path("table.npy"), "--output", path("out.npy")});
  EXPECT_EQ(o.status, 0) << o.err;
  const auto made = hpe::files::describe(path("out.npy"));
  EXPECT_EQ(made.type, "f32");
  std::vector<float> values(made.elements(sizeof(float)));
  hpe::files::read(made, values.data());
  EXPECT_EQ(values, (std::vector<float>{50, 0, 0, 30}));

  const outcome s = run({"scatter", path("index.npy"), "--data", path("out.npy"), "--output", path("back.npy")});
  EXPECT_EQ(s.status, 0) << s.err;
  const auto back = hpe::files::describe(path("back.npy"));
  std::vector<float> scattered(back.elements(sizeof(float)));
  hpe::files::read(back, scattered.data());
  EXPECT_EQ(scattered, (std::vector<float>{0, 0, 0, 30, 0, 50}));
}

TEST_F(gather_command, hostile_files_are_refused) {
  write<std::int32_t>("negative.npy", "i32", {1, 2, -3});
  write<float>("floats.npy", "f32", {1, 2});
  write<std::uint32_t>("far.npy", "u32", {1, 2, 77});
  write("text.json", "{");
  write("plain.raw", "12345678");
  refused({"gather", path("negative.npy")}, "index -3 at place 2 is negative");
  refused({"gather", path("floats.npy")}, "indices are i32, u32, i64 or u64");
  refused({"gather", path("plain.raw")}, "neither .npy nor .json");
  refused({"gather", path("text.json")}, "text.json: ");
  refused({"gather", path("nothing.json")}, "cannot read");
  refused({"gather", path("far.npy"), "--table=10"}, "index 77 at place 2 is out of range: the table has 10 elements");
  refused({"gather", path("far.npy"), "--data", path("floats.npy")}, "index 2 at place 1 is out of range");
  refused({"scatter", path("far.npy"), "--data", path("floats.npy")}, "2 values for 3 indices");
  EXPECT_EQ(run({"gather", path("far.npy"), "--table=10", "--out-of-range=skip", "--no-check"}).status, 0);
  refused({"gather", "100", "--bytes=12"}, "elements of 12 bytes cannot be gathered; 4, 8, 16 and 32 are possible");
  refused({"gather", "100", "--method=quick"}, "quick");
  refused({"gather", "100", "--partitions=101"}, "--partitions 101: the table has only 100 elements");
  refused({"gather", "2^60"}, "where");
  EXPECT_TRUE(contains(run({"gather", "--help"}).out, "Usage: hpe gather"));
  EXPECT_FALSE(contains(run({"gather", "--help"}).out, "--duplicates"));
  EXPECT_TRUE(contains(run({"scatter", "--help"}).out, "--duplicates"));
}

TEST_F(gather_command, indices_that_need_too_much_memory_are_refused) {
  constexpr std::uint64_t last = ~std::uint64_t{0};
  write<std::uint64_t>("last.npy", "u64", {1, last});
  write<std::uint64_t>("far.npy", "u64", {1, hpe::gather::largest_index});
  refused({"gather", path("last.npy")}, "contains the index 18446744073709551615");
  refused({"scatter", path("last.npy")}, "without --table, the largest possible index is 36028797018963968");
  refused({"gather", path("last.npy"), "--table=10"}, "index 18446744073709551615 at place 1 is out of range");
  EXPECT_EQ(run({"gather", path("last.npy"), "--table=10", "--out-of-range=skip", "--no-check"}).status, 0);
  refused({"gather", path("far.npy")}, "where");
  refused({"gather", path("far.npy"), "--table", "2^62", "--bytes=32", "--host", "--devices=1"}, "where");

  // The file system stores only the header of this file; the rest is a hole.
  constexpr std::uint64_t bytes = std::uint64_t{4} << 40, header = 128;
  std::string head("\x93NUMPY\x01\0\x76\0", 10);
  head += fmt::format("{{'descr': '<u4', 'fortran_order': False, 'shape': ({},), }}", bytes / sizeof(std::uint32_t));
  head.resize(header - 1, ' ');
  write("hole.npy", head + "\n");
  std::filesystem::resize_file(path("hole.npy"), header + bytes);
  refused({"gather", path("hole.npy")}, "1099511627776 indices in ");
}

TEST(spatter, patterns_are_those_of_its_manual) {
  const auto of = [](const std::string& pattern) {
    return indices_of_json(R"([{"kernel":"Gather","count":1,"pattern":")" + pattern + "\"}]", 0, "f");
  };
  EXPECT_EQ(of("UNIFORM:8:4"), (list{0, 4, 8, 12, 16, 20, 24, 28}));
  EXPECT_EQ(of("MS1:8:4:32"), (list{0, 1, 2, 3, 35, 36, 37, 38}));
  EXPECT_EQ(of("MS1:8:2,3:20"), (list{0, 1, 21, 41, 42, 43, 44, 45}));
  EXPECT_EQ(of("MS1:8:2,3:20,22"), (list{0, 1, 21, 43, 44, 45, 46, 47}));
  EXPECT_EQ(of("LAPLACIAN:1:1:100"), (list{0, 1, 2}));
  EXPECT_EQ(of("LAPLACIAN:2:2:100"), (list{0, 100, 198, 199, 200, 201, 202, 300, 400}));
  EXPECT_EQ(of("LAPLACIAN:3:1:100"), (list{0, 9900, 9999, 10000, 10001, 10100, 20000}));
  EXPECT_EQ(of("1,2,4"), (list{1, 2, 4}));
}

TEST(spatter, counts_and_deltas_repeat_a_pattern) {
  const std::string text =
      R"([{"pattern":[5,0],"delta":3,"count":3},{"kernel":"SCATTER","pattern":[1],"delta":[1,10],"length":4}])";
  EXPECT_EQ(indices_of_json(text, 0, "f"), (list{5, 0, 8, 3, 11, 6}));
  EXPECT_EQ(indices_of_json(text, 1, "f"), (list{1, 2, 12, 13}));
}

TEST(spatter, malformed_patterns_are_refused_with_a_reason) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "parse error"},
      {"{}", "not a list of patterns"},
      {"[]", "there is no pattern 0; the file has 0"},
      {"[1]", "not an object"},
      {"[{}]", "\"pattern\" is missing"},
      {R"([{"kernel":"GS","pattern":[1]}])", "neither Gather nor Scatter"},
      {R"([{"pattern":[]}])", "empty list"},
      {R"([{"pattern":[-1]}])", "whole number"},
      {R"([{"pattern":[1.5]}])", "whole number"},
      {R"([{"pattern":["x"]}])", "whole number"},
      {R"([{"pattern":"MS1:8:9:2"}])", "a gap at place 9"},
      {R"([{"pattern":"MS1:8:1,2:2,3,4"}])", "2 places of gaps are given, but 3 gaps"},
      {R"([{"pattern":"UNIFORM:8"}])", "the form is UNIFORM:LENGTH:GAP"},
      {R"([{"pattern":"UNIFORM:0:1"}])", "a pattern of 0 indices"},
      {R"([{"pattern":"LAPLACIAN:4:1:9"}])", "4 dimensions"},
      {R"([{"pattern":"RANDOM"}])", "neither UNIFORM, MS1, LAPLACIAN"},
      {R"([{"pattern":[1],"count":0}])", "0 repetitions of a pattern"},
      {R"([{"pattern":[1],"count":99999999999}])", "99999999999 repetitions of a pattern"},
      {R"([{"pattern":[1],"delta":36028797018963968,"count":9}])", "an index beyond"},
  };
  for (const auto& [text, because] : cases) {
    try {
      static_cast<void>(indices_of_json(text, 0, "the file"));
      ADD_FAILURE() << text << " was read";
    } catch (const bad_input& e) {
      EXPECT_TRUE(contains(e.what(), because)) << text << ": " << e.what();
      EXPECT_TRUE(contains(e.what(), "the file")) << e.what();
    }
  }
}

}  // namespace
