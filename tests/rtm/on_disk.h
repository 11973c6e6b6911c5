#pragma once

/// Support for the tests of surveys on disk: a temporary folder, and a survey that is small enough for a test.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "apps/rtm/survey.h"

namespace hpe::rtm::testing {

inline std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class on_disk : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }
  std::string save_text(const std::string& text, const std::string& name = "survey.toml") const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
  [[nodiscard]] std::string complaint(const std::string& text) const {
    try {
      static_cast<void>(read_survey(save_text(text)));
    } catch (const bad_input& e) {
      return e.what();
    }
    return "";
  }

  /// A survey of three shots, small enough for a test.
  std::string small_survey(const std::string& more = "") const {
    return save_text(
        "[model]\nbuiltin = \"flat\"\nsize = [70, 1, 40]\nspacing = 20\norigin = [1000, 500]\n"
        "[wavelet]\nfrequency = 9\n[shots]\nx = [1300, 2100, 400]\n[receivers]\nx = [1000, 2380, 20]\n"
        "[migration]\nsmooth = 40\n[time]\nlength = 0.9\ninterval = 0.008\n[records]\nfile = \"r.sgy\"\n"
        "[image]\nname = \"image\"\nformats = [\"npy\"]\n" +
        more);
  }

 private:
  /// The child process of a death test uses the folder of the test that starts it.
  static std::filesystem::path folder() {
    constexpr const char* name = "HPE_TEST_SURVEY_FOLDER";
    setenv(name, (::testing::TempDir() + "/hpe-survey-" + std::to_string(getpid())).c_str(), 0);
    return getenv(name);
  }
  const std::filesystem::path folder_ = folder();
};

}  // namespace hpe::rtm::testing
