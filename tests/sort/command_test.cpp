// Runs `hpe sort` as users do.

#include "tests/command.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "apps/files/element_file.h"
#include "apps/modules/modules.h"
#include "apps/sort/sort_main.h"
#include "hpe/hpe.hpp"

namespace {

using command_test::contains;
using command_test::outcome;

outcome run(std::vector<std::string> words) {
  words.insert(words.begin(), "sort");
  return command_test::call(sort_main, std::move(words));
}

TEST(sort_command, sorts_every_type_and_says_so) {
  for (const char* type : {"i32", "u32", "i64", "u64", "f32", "f64", "u32_u32", "u64_u64", "f32_u32"}) {
    for (const char* how : {"merge", "radix"}) {
      const outcome o = run({"20001", "--type", type, "--repeats", "1", "--method", how});
      EXPECT_EQ(o.status, 0) << o.err;
      EXPECT_TRUE(contains(o.out, "20001 elements in ")) << o.out;
      EXPECT_TRUE(contains(o.out, "the result is right")) << o.out;
    }
  }
}

TEST(sort_command, explains) {
  const outcome o = run({"30011", "--repeats=1", "--explain"});
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_TRUE(contains(o.out, " parts, merged in ")) << o.out;
  const outcome by_radix = run({"30011", "--repeats=1", "--explain", "--method=radix"});
  EXPECT_TRUE(contains(by_radix.out, "by radix: ")) << by_radix.out;
  EXPECT_EQ(run({"30011", "--method", "quick"}).status, 2);
}

TEST(sort_command, files_come_and_go) {
  namespace files = hpe::files;
  const auto folder = std::filesystem::path(::testing::TempDir()) / ("hpe-sort-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string in = folder / "in.npy", out = folder / "out.npy", raw = folder / "out.raw";
  std::vector<float> values(5001);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((i * 7919) % 5003) - 100;
  files::write(in, "f32", {values.size()}, values.data(), sizeof(float));
  for (const std::string& to : {out, raw}) {
    const outcome o = run({in, "--output", to, "--repeats=1"});
    EXPECT_EQ(o.status, 0) << o.err;
    EXPECT_TRUE(contains(o.out, "5001 elements in ")) << o.out;
    const files::description made = files::describe(to);
    ASSERT_EQ(made.elements(sizeof(float)), values.size());
    std::vector<float> sorted(values.size());
    files::read(made, sorted.data());
    std::vector<float> wanted = values;
    std::stable_sort(wanted.begin(), wanted.end());
    EXPECT_EQ(sorted, wanted);
  }
  EXPECT_EQ(files::describe(out).type, "f32");
  EXPECT_EQ(run({raw, "--type", "f32", "--repeats=1"}).status, 0);
  const auto refused = [](const std::vector<std::string>& words, const std::string& because) {
    const outcome o = run(words);
    EXPECT_EQ(o.status, 2) << o.err;
    EXPECT_TRUE(contains(o.err, because)) << o.err;
  };
  refused({in, "--type", "u64"}, "in.npy holds elements of the type f32; expected u64");
  refused({raw, "--type", "u64_u64"}, "is not a whole number of elements of 16 bytes");
  refused({in, "--output", "/nowhere/at/all"}, "cannot write /nowhere/at/all");
  refused({in, "--output", in}, "in.npy is an input, so it cannot be an output");
  refused({in, "--json", in}, "in.npy is an input, so it cannot be an output");
  values[17] = std::nanf("");
  files::write(in, "f32", {values.size()}, values.data(), sizeof(float));
  refused({in}, "element 17 is not a number (NaN)");
  files::write(in, "f32", {50, 100}, values.data(), sizeof(float));
  refused({in}, "has 2 axes");
  std::filesystem::remove_all(folder);
}

TEST(sort_command, a_missing_module_names_the_command_that_builds_it) {
  try {
    static_cast<void>(hpe::modules::require("libhpe-absent-kernels.so"));
    ADD_FAILURE() << "there is no such module";
  } catch (const hpe::error& e) {
    EXPECT_EQ(e.status(), HPE_ERROR_NOT_FOUND);
    EXPECT_TRUE(contains(e.what(), "/libhpe-absent-kernels.so is missing: cmake --build /")) << e.what();
    EXPECT_TRUE(contains(e.what(), " --target hpe-absent-kernels makes it")) << e.what();
  }
}

TEST(sort_command, refuses_wrong_command_lines) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"--tpye", "u32"},
                                                                                     {"--type"},
                                                                                     {"/nowhere/at/all"},
                                                                                     {"2^60"},
                                                                                     {"0"},
                                                                                     {"--type", "i16"},
                                                                                     {"--repeats", "0"},
                                                                                     {"--devices", "99"}}) {
    const outcome o = run(words);
    EXPECT_EQ(o.status, 2) << words.front();
    EXPECT_TRUE(contains(o.err, "hpe sort: ")) << o.err;
  }
  EXPECT_TRUE(contains(run({"--help"}).out, "Usage: hpe sort"));
}

}  // namespace
