// `hpe wave` as users call it.

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "apps/fdtd/fdtd_main.h"

namespace {

struct outcome {
  int status;
  std::string out, err;
};

outcome run(std::vector<std::string> words) {
  words.insert(words.begin(), "wave");
  std::vector<char*> arguments;
  for (std::string& w : words) arguments.push_back(w.data());
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int status = fdtd_main(static_cast<int>(arguments.size()), arguments.data());
  std::fflush(stdout);
  std::fflush(stderr);
  return {status, ::testing::internal::GetCapturedStdout(), ::testing::internal::GetCapturedStderr()};
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(WaveCommand, ComputesAndChecksEveryCut) {
  for (const char* cut : {"slabs", "pencils", "boxes"}) {
    const outcome o = run({"--size=24x20x28", "--order", "4", "--steps", "3", "--devices=2", "--cut", cut, "--check"});
    EXPECT_EQ(o.status, 0) << o.err;
    EXPECT_TRUE(contains(o.out, "24 x 20 x 28 cells")) << o.out;
    EXPECT_TRUE(contains(o.out, "the same bits as on one device")) << o.out;
  }
}

TEST(WaveCommand, RefusesWhatCannotBeMeant) {
  const auto refused = [](const std::vector<std::string>& words, const std::string& because) {
    const outcome o = run(words);
    EXPECT_EQ(o.status, 2) << words.front();
    EXPECT_TRUE(contains(o.err, "hpe wave: ") && contains(o.err, because)) << o.err;
  };
  refused({"--sise", "4"}, "unknown option --sise");
  refused({"--size"}, "needs a value");
  refused({"--size", "24x20"}, "it looks like 512x512x512");
  refused({"--size", "24x20x0"}, "a whole number from 1");
  refused({"--order", "17"}, "a whole number from 1 to 16");
  refused({"--order", "3"}, "even numbers");
  refused({"--steps", "few"}, "a whole number from 1");
  refused({"--cut", "slices"}, "possible are slabs, pencils, boxes");
  refused({"--devices", "1000"}, "1000 devices");
  refused({"--check=yes"}, "takes no value");
  refused({"file"}, "no file is read");
}

TEST(WaveCommand, ExplainsItself) {
  for (const char* word : {"--help", "-h"}) {
    const outcome o = run({word});
    EXPECT_EQ(o.status, 0);
    EXPECT_TRUE(contains(o.out, "--cut HOW")) << o.out;
  }
}

}  // namespace
