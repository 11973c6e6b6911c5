#pragma once

// Calls a command of hpe in this process.

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

namespace command_test {

struct outcome {
  int status;
  std::string out, err;
};

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// words: the name of the command and its arguments.
inline outcome call(int (*main_function)(int, char**), std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& w : words) arguments.push_back(w.data());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int status = main_function(static_cast<int>(arguments.size()), arguments.data());
  std::fflush(stdout);
  std::fflush(stderr);
  return {status, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

}  // namespace command_test
