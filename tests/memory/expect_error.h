#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "hpe/error.hpp"

/// Expects that the action throws hpe::error with this status and a message that contains the words.
inline void expect_error(hpeStatus status, const std::string& words, const std::function<void()>& action) {
  try {
    action();
    ADD_FAILURE() << "nothing was thrown; expected: " << words;
  } catch (const hpe::error& e) {
    EXPECT_EQ(e.status(), status) << e.what();
    EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
  }
}
