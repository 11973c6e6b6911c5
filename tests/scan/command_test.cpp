// Runs `hpe scan` as users do.

#include "tests/command.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "apps/files/element_file.h"
#include "apps/scan/scan_main.h"
#include "apps/scan/scan_request.h"
#include "tests/scan/support.h"

namespace hpe::scan::testing {
namespace {

using command_test::contains;
using command_test::outcome;

outcome run(std::vector<std::string> words) {
  words.insert(words.begin(), "scan");
  return command_test::call(scan_main, std::move(words));
}

TEST(scan_command, has_defaults_for_everything) {
  const outcome o = run({"100000", "--repeats", "1"});
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_TRUE(contains(o.out, "100000 elements in ")) << o.out;
  EXPECT_TRUE(contains(o.out, "the result is right")) << o.out;
}

TEST(scan_command, every_type_and_operator) {
  for (const char* type : {"i32", "i64", "f32", "f64"})
    for (const char* op : {"sum", "min", "max"})
      for (const char* how : {"single-pass", "three-stages"}) {
        const outcome o = run({"--type", type, "--operator", op, "--algorithm", how, "777", "--problems=9",
                               "--repeats=1", "--exclusive", "--iterations=1"});
        EXPECT_EQ(o.status, 0) << o.err;
        EXPECT_TRUE(contains(o.out, "the result is right")) << o.out;
      }
}

TEST(scan_command, explains_its_choice) {
  const outcome o = run({"2^16", "--problems=3", "--explain", "--repeats=1", "--split", "mps", "--in-place"});
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_TRUE(contains(o.out, "3 problems of 65536 elements of 4 bytes, inclusive, i32_sum\n")) << o.out;
  EXPECT_TRUE(contains(o.out, "MPS was asked for")) << o.out;
  EXPECT_TRUE(contains(o.out, "one pass: ")) << o.out;
}

TEST(scan_command, files_come_and_go) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / ("hpe-scan-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::vector<double> values = random_values<double>(3000, fresh_seed());
  const std::string from = folder / "in", to = folder / "out";
  std::ofstream(from, std::ios::binary).write(reinterpret_cast<const char*>(values.data()), 3000 * sizeof(double));
  const outcome o = run({from, "--type=f64", "--operator=max", "--problems=3", "--output", to, "--repeats=1"});
  EXPECT_EQ(o.status, 0) << o.err;
  std::vector<double> found(3000);
  std::ifstream(to, std::ios::binary).read(reinterpret_cast<char*>(found.data()), 3000 * sizeof(double));
  EXPECT_EQ(first_difference(found.data(), reference(values, 1000, built_in::max, true)), 3000U);
  EXPECT_EQ(run({from, "--type=f64", "--size=3001"}).status, 2);
  EXPECT_EQ(run({folder / "none"}).status, 2);
  EXPECT_EQ(run({folder}).status, 2);
  // The same elements as .npy, whose axes are problems and elements.
  const std::string npy = folder / "in.npy", result = folder / "out.npy";
  files::write(npy, "f64", {3, 1000}, values.data(), sizeof(double));
  EXPECT_EQ(run({npy, "--operator=max", "--output", result, "--repeats=1"}).status, 0);
  const files::description made = files::describe(result);
  EXPECT_EQ(made.shape, (std::vector<std::uint64_t>{3, 1000}));
  std::vector<double> again(3000);
  files::read(made, again.data());
  EXPECT_EQ(again, found);
  const outcome wrong = run({npy, "--type=i32"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_TRUE(contains(wrong.err, "holds elements of the type f64; expected i32")) << wrong.err;
  EXPECT_EQ(run({from, "--output", folder / "no" / "place", "--type=f64", "--repeats=1"}).status, 2);
  std::filesystem::remove_all(folder);
}

TEST(scan_command, refuses_invalid_arguments) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"--sise", "3"},
                                                                                     {"--size"},
                                                                                     {"--size", "many"},
                                                                                     {"--size", "3^2"},
                                                                                     {"2^63"},
                                                                                     {"2^60"},
                                                                                     {"99999999999G"},
                                                                                     {"--type", "i16"},
                                                                                     {"--operator", "product"},
                                                                                     {"--split", "half"},
                                                                                     {"--algorithm", "fast"},
                                                                                     {"--explain=yes"},
                                                                                     {"a", "b"},
                                                                                     {"--repeats", "0"},
                                                                                     {"--devices", "99"}}) {
    const outcome o = run(words);
    EXPECT_EQ(o.status, 2) << words.front() << ": " << o.err;
    EXPECT_TRUE(contains(o.err, "hpe scan: ")) << o.err;
  }
  EXPECT_EQ(run({"--iterations", "3", "--algorithm", "three-stages"}).status, 2);
  EXPECT_TRUE(contains(run({"--help"}).out, "Usage: hpe scan"));
}

}  // namespace
}  // namespace hpe::scan::testing
