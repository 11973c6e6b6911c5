// Runs `hpe fft` as users do.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "apps/files/element_file.h"
#include "tests/fft/reference.h"
#include "tests/shell.h"

namespace hpe::fft {
namespace {

outcome command(const std::string& arguments) { return shell("HPE_DEVICES=soft:3 '" HPE_COMMAND "' fft " + arguments); }

bool says(const outcome& o, const std::string& part) { return o.text.find(part) != std::string::npos; }

TEST(command, help_describes_the_scaling) {
  const outcome o = command("--help");
  EXPECT_EQ(exit_status(o), 0);
  EXPECT_TRUE(says(o, "Usage: hpe fft")) << o.text;
  EXPECT_TRUE(says(o, "Results are not scaled")) << o.text;
}

TEST(command, does_any_size_and_form) {
  for (const char* arguments : {"2^16", "10007 --double --form convolution", "1000 --form exchange --devices 2",
                                "60x50 --batch 2 --inverse", "2^10 --form transpose --scrambled", "1 --repeats 1"}) {
    const outcome o = command(arguments);
    EXPECT_EQ(exit_status(o), 0) << arguments << "\n" << o.text;
    EXPECT_TRUE(says(o, "there and back: relative error")) << o.text;
  }
}

TEST(command, tells_its_plan_without_a_transform) {
  const outcome shared = command("2^20 --devices 2 --plan"), alone = command("2^10 --devices 2 --plan");
  EXPECT_EQ(exit_status(shared), 0);
  EXPECT_TRUE(says(shared, "transpose on 2 devices")) << shared.text;
  EXPECT_FALSE(says(shared, "relative error")) << shared.text;
  EXPECT_TRUE(says(alone, "local on 1 device")) << alone.text;
}

TEST(command, transforms_files) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / ("hpe fft " + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const auto x = reference::random_vector<double>(300, 5);
  std::ofstream(folder / "in", std::ios::binary)
      .write(reinterpret_cast<const char*>(x.data()), static_cast<std::streamsize>(x.size() * sizeof(x[0])));
  const outcome o = command("--double '" + (folder / "in").string() + "' --output '" + (folder / "out").string() + "'");
  EXPECT_EQ(exit_status(o), 0) << o.text;
  reference::vector<double> y(x.size() + 1);
  std::ifstream out(folder / "out", std::ios::binary);
  out.read(reinterpret_cast<char*>(y.data()), static_cast<std::streamsize>(y.size() * sizeof(y[0])));
  EXPECT_EQ(static_cast<std::size_t>(out.gcount()), x.size() * sizeof(x[0]));
  y.pop_back();
  EXPECT_LT(reference::error_of(y, reference::transform(x, 1, 300, -1), 300), 1);
  const outcome wrong = command("--double --size 301 '" + (folder / "in").string() + "'");
  EXPECT_EQ(exit_status(wrong), 2);
  EXPECT_TRUE(says(wrong, "has 300 elements")) << wrong.text;
  // The same elements as .npy, whose header states type and size.
  const std::string npy = (folder / "in.npy").string(), spectrum = (folder / "out.npy").string();
  files::write(npy, "c128", {300}, x.data(), sizeof(x[0]));
  const outcome told = command("'" + npy + "' --output '" + spectrum + "'");
  EXPECT_EQ(exit_status(told), 0) << told.text;
  const files::description made = files::describe(spectrum);
  EXPECT_EQ(made.type, "c128");
  EXPECT_EQ(made.shape, (std::vector<std::uint64_t>{300}));
  reference::vector<double> z(x.size());
  files::read(made, z.data());
  EXPECT_EQ(z, y);
  std::vector<float> reals(20);
  files::write(npy, "f32", {20}, reals.data(), sizeof(float));
  const outcome refused = command("'" + npy + "'");
  EXPECT_EQ(exit_status(refused), 2);
  EXPECT_TRUE(says(refused, "holds elements of the type f32; expected c64")) << refused.text;
  std::filesystem::remove_all(folder);
}

TEST(command, refuses_invalid_arguments) {
  const auto refused = [](const std::string& arguments, const std::string& words) {
    const outcome o = command(arguments);
    EXPECT_EQ(exit_status(o), 2) << o.text;
    EXPECT_TRUE(says(o, words)) << o.text;
  };
  refused("--sise 4", "unknown option --sise");
  refused("--size", "--size needs a value");
  refused("--size 0", "a whole number from 1");
  refused("0", "a whole number from 1");
  refused("12x", "SIZE|FILE 12x: expected two whole numbers above 0 with x between them");
  refused("--size 3x4x5", "--size 3x4x5: expected two whole numbers above 0 with x between them");
  refused("2^60", "complex numbers of 8 bytes in a batch of 1: this needs");
  refused("--size 12y", "a whole number from 1");
  refused("--size 2^63", "a whole number from 1");
  refused("--double=1", "takes no value");
  refused("--form fastest", "possible values are automatic, local");
  refused("--effort none", "possible values are estimate");
  refused("--devices 9", "--devices 9: there are 3");
  refused("7 --form exchange", "an even length");
  refused("/nowhere/at/all", "No such file");
  refused("--output /nowhere/at/all", "No such file");
}

}  // namespace
}  // namespace hpe::fft
