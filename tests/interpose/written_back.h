#pragma once

/// Figures of `hpe run --profile` about data that is larger than device memory, in MiB; 0 if the table lacks them.

#include <cstdlib>
#include <string>

#include "tests/shell.h"

inline double number_after(const outcome& told, const std::string& words) {
  const std::size_t at = told.text.find(words);
  return at == std::string::npos ? 0 : std::strtod(told.text.c_str() + at + words.size(), nullptr);
}

inline double evicted(const outcome& told) { return number_after(told, "data larger than device memory: "); }
inline double written_back(const outcome& told) { return number_after(told, "MiB were evicted, of which "); }
