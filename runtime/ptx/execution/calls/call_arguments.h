#pragma once

/// The arguments and the result of a call, from a kernel, of a function that hpe implements.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/ptx/program/ptx_program.h"

namespace hpe::ptx {

class call_arguments {
 public:
  /// `formals`: the callee's parameter memory, which begins with the results (function::formals).
  call_arguments(const function& callee, std::uint8_t* formals) : callee_(callee), formals_(formals) {}

  /// Returns argument n; zero if the callee has fewer arguments.
  template <class T>
  [[nodiscard]] T get(std::size_t n) const {
    T value{};
    std::size_t seen = 0;
    for (const formal_parameter& p : callee_.formals) {
      if (p.is_result || seen++ != n) continue;
      std::memcpy(&value, formals_ + p.offset, std::min<std::size_t>(sizeof value, p.size));
    }
    return value;
  }

  void set_result(std::uint64_t value) {
    if (callee_.formals.empty() || !callee_.formals[0].is_result) return;
    const formal_parameter& result = callee_.formals[0];
    std::memcpy(formals_ + result.offset, &value, std::min<std::size_t>(sizeof value, result.size));
  }

 private:
  const function& callee_;
  std::uint8_t* formals_;
};

}  // namespace hpe::ptx
