#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "hpe/hpe.h"

/// Whether the call failed with this status and a message with these words.
inline testing::AssertionResult fails(hpeStatus got, hpeStatus wanted, std::initializer_list<std::string> words = {}) {
  const std::string text = hpeGetLastErrorMessage();
  if (got != wanted)
    return testing::AssertionFailure() << hpeStatusName(got) << " instead of " << hpeStatusName(wanted) << ": " << text;
  if (text.empty()) return testing::AssertionFailure() << "no sentence";
  for (const std::string& word : words)
    if (text.find(word) == std::string::npos) return testing::AssertionFailure() << '"' << text << "\" lacks " << word;
  return testing::AssertionSuccess();
}
