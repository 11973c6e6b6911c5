// Runs `hpe wave` as users do.

#include "tests/command.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/fdtd/fdtd_main.h"
#include "apps/files/element_file.h"

namespace {

using command_test::contains;
using command_test::outcome;

outcome run(std::vector<std::string> words) {
  words.insert(words.begin(), "wave");
  return command_test::call(fdtd_main, std::move(words));
}

TEST(WaveCommand, ComputesAndChecksEveryCut) {
  for (const char* cut : {"slabs", "pencils", "boxes"}) {
    const outcome o = run({"24x20x28", "--order", "4", "--steps", "3", "--devices=2", "--cut", cut, "--check"});
    EXPECT_EQ(o.status, 0) << o.err;
    EXPECT_TRUE(contains(o.out, "24 x 20 x 28 cells")) << o.out;
    EXPECT_TRUE(contains(o.out, "the same bits as on one device")) << o.out;
  }
}

TEST(WaveCommand, WritesFrames) {
  const std::string name = std::filesystem::path(::testing::TempDir()) / ("hpe-wave-" + std::to_string(getpid()));
  const outcome o = run(
      {"24x20x28", "--steps", "7", "--every", "3", "--order", "4", "--cut", "pencils", "--output", name, "--quiet"});
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(o.out + o.err, "");
  for (const char* step : {"-000003", "-000006"}) {
    const hpe::files::description frame = hpe::files::describe(name + step + ".npy");
    EXPECT_EQ(frame.type, "f32");
    EXPECT_EQ(frame.shape, (std::vector<std::uint64_t>{24, 28}));
    std::vector<float> values(frame.elements(sizeof(float)));
    hpe::files::read(frame, values.data());
    EXPECT_GT(*std::max_element(values.begin(), values.end()), 0);
    EXPECT_GT(std::filesystem::file_size(name + step + ".png"), 500U);
    std::filesystem::remove(name + step + ".npy");
    std::filesystem::remove(name + step + ".png");
  }
  EXPECT_FALSE(std::filesystem::exists(name + "-000007.npy"));
  EXPECT_EQ(run({"24x20x28", "--steps", "3", "--every", "3", "--devices", "1", "--output", name + ".npy"}).status, 0);
  EXPECT_TRUE(std::filesystem::remove(name + "-000003.npy"));
  EXPECT_FALSE(std::filesystem::exists(name + "-000003.png")) << "the ending of the name determines the format";
}

TEST(WaveCommand, RefusesInvalidArguments) {
  const auto refused = [](const std::vector<std::string>& words, const std::string& because) {
    const outcome o = run(words);
    EXPECT_EQ(o.status, 2) << words.front();
    EXPECT_TRUE(contains(o.err, "hpe wave: ") && contains(o.err, because)) << o.err;
  };
  refused({"--oder", "4"}, "unknown option --oder; is --order meant?");
  refused({"--order"}, "needs a value");
  refused({"24x20"}, "SIZE 24x20: expected one size, or three sizes with x between them");
  refused({"24x20x0"}, "a whole number from 1");
  refused({"--order", "17"}, "a whole number from 1 to 16");
  refused({"--order", "3"}, "an even number from 2 to 16");
  refused({"--steps", "few"}, "a whole number from 1");
  refused({"--cut", "slices"}, "possible values are slabs, pencils, boxes");
  refused({"--exchange", "by-hand"}, "possible values are copied, direct");
  refused({"24", "--devices", "4", "--cut", "pencils", "--exchange", "direct"}, "cut into slabs");
  refused({"--devices", "1000"}, "--devices 1000: there are 8");
  refused({"100000"}, "100000 x 100000 x 100000 cells: this needs");
  refused({"24", "--output", "/nowhere/at/all"}, "cannot write /nowhere/at/all-000100.png");
  refused({"--check=yes"}, "takes no value");
  refused({"file"}, "a whole number from 1");
}

TEST(WaveCommand, ExplainsItself) {
  for (const char* word : {"--help", "-h"}) {
    const outcome o = run({word});
    EXPECT_EQ(o.status, 0);
    EXPECT_TRUE(contains(o.out, "--cut HOW")) << o.out;
  }
}

}  // namespace
