// `hpe fft` as a user runs it.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "tests/fft/reference.h"

namespace hpe::fft {
namespace {

struct outcome {
  int status;
  std::string text;
};

outcome command(const std::string& arguments) {
  FILE* pipe = popen(("HPE_DEVICES=soft:3 '" HPE_COMMAND "' fft " + arguments + " 2>&1").c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("popen");
  std::string text;
  std::array<char, 4096> buffer{};
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) text.append(buffer.data(), got);
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text};
}

bool says(const outcome& o, const std::string& part) { return o.text.find(part) != std::string::npos; }

TEST(command, help_tells_how_it_is_scaled) {
  const outcome o = command("--help");
  EXPECT_EQ(o.status, 0);
  EXPECT_TRUE(says(o, "Usage: hpe fft")) << o.text;
  EXPECT_TRUE(says(o, "Nothing is scaled")) << o.text;
}

TEST(command, does_any_size_and_form) {
  for (const char* arguments :
       {"--size 2^16", "--size 10007 --double --form convolution", "--size 1000 --form exchange --devices 2",
        "--size 60x50 --batch 2 --inverse", "--size 2^10 --form transpose --scrambled", "--size 1 --repeats 1"}) {
    const outcome o = command(arguments);
    EXPECT_EQ(o.status, 0) << arguments << "\n" << o.text;
    EXPECT_TRUE(says(o, "there and back: relative error")) << o.text;
  }
}

TEST(command, transforms_files) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / ("hpe fft " + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const auto x = reference::random_vector<double>(300, 5);
  std::ofstream(folder / "in", std::ios::binary)
      .write(reinterpret_cast<const char*>(x.data()), static_cast<std::streamsize>(x.size() * sizeof(x[0])));
  const outcome o =
      command("--double --input '" + (folder / "in").string() + "' --output '" + (folder / "out").string() + "'");
  EXPECT_EQ(o.status, 0) << o.text;
  reference::vector<double> y(x.size() + 1);
  std::ifstream out(folder / "out", std::ios::binary);
  out.read(reinterpret_cast<char*>(y.data()), static_cast<std::streamsize>(y.size() * sizeof(y[0])));
  EXPECT_EQ(static_cast<std::size_t>(out.gcount()), x.size() * sizeof(x[0]));
  y.pop_back();
  EXPECT_LT(reference::error_of(y, reference::transform(x, 1, 300, -1), 300), 1);
  const outcome wrong = command("--double --size 301 --input '" + (folder / "in").string() + "'");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_TRUE(says(wrong, "has 4800 bytes")) << wrong.text;
  std::filesystem::remove_all(folder);
}

TEST(command, refuses_what_cannot_be_meant) {
  const auto refused = [](const std::string& arguments, const std::string& words) {
    const outcome o = command(arguments);
    EXPECT_EQ(o.status, 2) << o.text;
    EXPECT_TRUE(says(o, words)) << o.text;
  };
  refused("--sise 4", "unknown option --sise");
  refused("--size", "--size needs a value");
  refused("--size 0", "a whole number from 1");
  refused("--size 12y", "a whole number from 1");
  refused("--size 2^63", "a whole number from 1");
  refused("--double=1", "takes no value");
  refused("--form fastest", "possible are automatic, local");
  refused("--effort none", "possible are estimate");
  refused("--devices 9", "9 devices: there are 3");
  refused("--size 7 --form exchange", "an even length");
  refused("--input /nowhere/at/all", "No such file");
  refused("--output /nowhere/at/all", "No such file");
}

}  // namespace
}  // namespace hpe::fft
