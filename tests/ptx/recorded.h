#pragma once

/// What an H200 gave for the kernels of conformance_cases.h.

#include <cstdint>
#include <vector>

#include "tests/ptx/conformance_cases.h"

namespace hpe::ptx::test {

inline constexpr std::uint64_t canonical_nan = 0x7ff8000000000000;  // of f64

/// By case, then by operands. Empty where the record does not belong to these cases.
std::vector<std::uint64_t> recorded_results();

/// Results that the ISA leaves undefined, and where hpe does not follow the hardware.
bool is_left_open(const conformance_case& k, const std::array<std::uint64_t, 4>& operands);

}  // namespace hpe::ptx::test
