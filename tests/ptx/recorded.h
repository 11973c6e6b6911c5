#pragma once

/// What an H200 gave for the kernels of conformance_cases.h (driver 580, 2026-11-21).

#include <cstdint>
#include <vector>

#include "tests/ptx/conformance_cases.h"

namespace hpe::ptx::test {

/// By case, then by operands. Empty where the record does not belong to these cases.
std::vector<std::uint64_t> recorded_results();

/// Whether a result is the hardware's: the same bits, or, of the .approx instructions, which the hardware takes from
/// tables of its own, a value within the bound that recorded.cpp states.
bool is_as_recorded(const conformance_case& k, std::uint64_t mine, std::uint64_t recorded);

}  // namespace hpe::ptx::test
