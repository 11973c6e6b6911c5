#pragma once

namespace hpe::testing {

/// The source line of a check: std::source_location in a form that clang-tidy 14 can parse. As a default argument,
/// call_site::here() is the caller's line.
struct call_site {
  const char* file;
  int line;

  static constexpr call_site here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

}  // namespace hpe::testing
