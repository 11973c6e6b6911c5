// Tests the command as users see it: exit status, messages, files.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "apps/rtm/rtm_main.h"
#include "tests/temporary_folder.h"

namespace {

struct result {
  int status;
  std::string errors, output;
};

result rtm(std::vector<std::string> words) {
  words.insert(words.begin(), "rtm");
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  const int status = rtm_main(static_cast<int>(argv.size()), argv.data());
  return {status, testing::internal::GetCapturedStderr(), testing::internal::GetCapturedStdout()};
}

std::ptrdiff_t files_here() {
  return std::distance(std::filesystem::directory_iterator("."), std::filesystem::directory_iterator());
}

void expect_refused(const std::vector<std::string>& words, const std::string& because) {
  const auto before = files_here();
  const result r = rtm(words);
  EXPECT_EQ(files_here(), before) << "a refused command leaves no file behind";
  EXPECT_EQ(r.status, 2) << r.errors;
  EXPECT_NE(r.errors.find(because), std::string::npos) << r.errors;
}

class command_line : public testing::Test {
 protected:
  void SetUp() override {
    before_ = std::filesystem::current_path();
    std::filesystem::current_path(folder_.path());  // the folder for images without a given path
  }
  void TearDown() override { std::filesystem::current_path(before_); }
  [[nodiscard]] std::string in_folder(const std::string& name) const { return folder_ / name; }

 private:
  const temporary_folder folder_;
  std::filesystem::path before_;
};

TEST_F(command_line, ImagesASmallModel) {
  const result r =
      rtm({"--size", "60x1x40", "--shots", "2", "--time", "0.6", "--frequency=8", "--output", in_folder("a")});
  EXPECT_EQ(r.status, 0) << r.errors;
  EXPECT_EQ(std::filesystem::file_size(in_folder("a.f32")), 60u * 40 * 4);
  EXPECT_GT(std::filesystem::file_size(in_folder("a.png")), 1000u);
  EXPECT_NE(r.errors.find("60 x 1 x 40 cells of 75 m, 2 shots"), std::string::npos) << r.errors;
  EXPECT_NE(r.output.find("a.png"), std::string::npos);
  EXPECT_NE(r.errors.find(" steps for each of 2 shots; memory: "), std::string::npos) << r.errors;
}

TEST_F(command_line, ImagesAVolume) {
  const result r = rtm({"40x34x24", "--shots", "1x2", "--time", "0.3", "--sponge", "8", "--receivers", "0:4000:500",
                        "--output", in_folder("c")});
  EXPECT_EQ(r.status, 0) << r.errors;
  EXPECT_EQ(std::filesystem::file_size(in_folder("c.f32")), 40u * 34 * 24 * 4);
  EXPECT_NE(r.errors.find("2 shots"), std::string::npos) << r.errors;
}

TEST_F(command_line, ImagesWithMatchedLayers) {
  const std::vector<std::string> command{"60x1x40", "--shots", "1",        "--time",      "0.5",
                                         "--cpml",  "12",      "--output", in_folder("d")};
  const result r = rtm(command);
  EXPECT_EQ(r.status, 0) << r.errors;
  EXPECT_EQ(std::filesystem::file_size(in_folder("d.f32")), 60u * 40 * 4);
  std::vector<std::string> both = command;
  both.insert(both.end(), {"--sponge", "10"});
  expect_refused(both, "a sponge of 10 cells and matched layers of 12 cells: only one of the two is possible");
}

TEST_F(command_line, ImagesAFileAndAThinVolume) {
  std::vector<float> v(50 * 30, 2.0f);
  for (std::size_t i = 0; i < v.size(); ++i)
    if (i % 30 > 18) v[i] = 2.5f;
  std::ofstream(in_folder("v"), std::ios::binary)
      .write(reinterpret_cast<const char*>(v.data()), static_cast<std::streamsize>(v.size() * 4));
  const result r = rtm({"--model", "raw", "--size", "50x1x30", "--spacing", "10", "--unit", "km/s", "--extrude", "3",
                        "--shots", "1", "--time", "0.3", "--quiet", "--output", in_folder("b"), in_folder("v")});
  EXPECT_EQ(r.status, 0) << r.errors;
  EXPECT_EQ(r.errors + r.output, "");
  EXPECT_EQ(std::filesystem::file_size(in_folder("b.f32")), 50u * 3 * 30 * 4);
  EXPECT_EQ(std::filesystem::file_size(in_folder("v")), 50u * 30 * 4);
  expect_refused({"--model", "raw", "--size", "50x1x30", "--spacing", "10", "--unit", "km/s", "--output",
                  in_folder("v.f32"), "--json", in_folder("v"), in_folder("v")},
                 "v is an input, so it cannot be an output");
  expect_refused({"--model", "raw", "--size", "1000000x1000000x1000000", "--spacing", "10", in_folder("v")}, "cells");
  expect_refused({"--model", "raw", "--size", "50x1x31", "--spacing", "10", in_folder("v")}, "6000 bytes");
  expect_refused({"--model", "raw", "--size", "50x1x30", "--spacing", "10", in_folder("v")}, "m/s");
  expect_refused({"--model", "marmousi", in_folder("v")}, "1601 x 1 x 401");
}

TEST_F(command_line, RefusesInvalidArguments) {
  expect_refused({"--colour"}, "unknown option --colour");
  expect_refused({"--model", "moon"}, "--model moon");
  expect_refused({"--model", "raw"}, "needs the file");
  expect_refused({"--model", "marmousi", "/nonexistent"}, "cannot open /nonexistent");
  expect_refused({"file"}, "built in");
  expect_refused({"--size", "0x1x30"}, "each side must be");
  expect_refused({"--size", "60x-1x30"}, "each side must be");
  expect_refused({"--size", "60x30"}, "--size 60x30: expected 3 numbers with x between them, and there are 2");
  expect_refused({"--size", "1.5x1x30"}, "not a number of cells");
  expect_refused({"--size"}, "needs a value");
  expect_refused({"--spacing", "-5"}, "more than 0");
  expect_refused({"--spacing", "wide"}, "not a number");
  expect_refused({"--size", "60x1x40", "--dt", "1"}, "to be stable");
  expect_refused({"--size", "60x1x40", "--shots", "0"}, "--shots 0");
  expect_refused({"--size", "60x1x40", "--shots", "2x2"}, "along y");
  expect_refused({"--size", "60x1x40", "--receivers", "0:9000:10"}, "expected positions");
  expect_refused({"--size", "60x1x40", "--receivers", "-10:100:10"}, "expected positions");
  expect_refused({"--size", "60x1x40", "--receivers", "0:100:0"}, "step above 0");
  expect_refused({"--size", "60x1x40", "--receivers", "0:3000:1e-6"}, "must not be below the side of a cell, 75 m");
  expect_refused({"1000000x1000000x1000000"}, "cells: this needs 20.8 EiB on the host");
  expect_refused({"60x1x40", "--extrude", "100000", "--size", "100000x1x100000"}, "on the host");
  expect_refused({"--size", "60x1x40", "--shot-depth", "5000"}, "outside the model");
  expect_refused({"--size", "60x1x40", "--data", "raw"}, "--data raw");
  expect_refused({"--devices", "0"}, "--devices 0");
  expect_refused({"--size", "60x1x40", "--devices", "64"}, "--devices 64: there are 4");
  expect_refused({"--size", "60x5x40", "--extrude", "3"}, "only a section");
  expect_refused({"--quiet=yes"}, "takes no value");
  expect_refused({"--size", "100"}, "and there is 1");
  expect_refused({"--size", "60x1x40", "--frequency", "1e11"}, "must be at least 2 cells long; 2");
  expect_refused({"--size", "60x1x40", "--dt", "1e-15"}, "takes more than ten million steps of 1e-15 s");
  expect_refused({"--size", "60x1x40", "--output", "x.jpg"}, "the name must end in .png or .f32 or .npy or .sgy");
  expect_refused({"--size", "60x1x40", "--output", "/nonexistent/x"}, "cannot write");
}

TEST_F(command_line, ExplainsItself) {
  const result r = rtm({"--help"});
  EXPECT_EQ(r.status, 0);
  for (const char* word : {"--model", "--devices", "--receivers", "--free-surface", "NAME.png"})
    EXPECT_NE(r.output.find(word), std::string::npos) << word;
}

}  // namespace
