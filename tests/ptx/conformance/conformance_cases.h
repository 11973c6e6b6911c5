#pragma once

/// Every spelling of a pure instruction, each in a kernel that applies it to the same corner cases.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace hpe::ptx::test {

struct conformance_case {
  std::string spelling;  // "add.rz.f32"
  std::string shape;     // "result=operands": p predicate, h 16 bits, u 32, v 64
  std::string suffix;    // immediate operands at the end, ", 0x96"
  bool approximate = false;
};

std::vector<conformance_case> conformance_cases();

/// Returns the operands of each of the kernels' threads.
std::vector<std::array<std::uint64_t, 4>> conformance_operands();

/// Returns PTX with the kernels case_0, case_1, ...(operands, results). Results have 64 bits, zero-extended.
std::string conformance_text(const std::vector<conformance_case>& cases);

}  // namespace hpe::ptx::test
