#pragma once

/// The results of an H200 for the kernels of conformance_cases.h (driver 580, 2026-11-21).

#include <cstdint>
#include <vector>

#include "tests/ptx/conformance/conformance_cases.h"

namespace hpe::ptx::test {

/// Returns the results by case, then by operands. Empty if the record was made for other cases.
std::vector<std::uint64_t> recorded_results();

/// Returns whether a result agrees with the hardware's: in all bits, or, for the .approx instructions, which the
/// hardware computes from tables, within the bound in recorded.cpp.
bool is_as_recorded(const conformance_case& k, std::uint64_t mine, std::uint64_t recorded);

}  // namespace hpe::ptx::test
