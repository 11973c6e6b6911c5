#pragma once

/// What an H200 gave for the kernels of conformance_cases.h (driver 580, 2026-11-21).

#include <cstdint>
#include <vector>

#include "tests/ptx/conformance_cases.h"

namespace hpe::ptx::test {

/// By case, then by operands. Empty where the record does not belong to these cases.
std::vector<std::uint64_t> recorded_results();

/// Spellings whose results are known to differ from the hardware's for some operands.
bool is_known_to_differ(const conformance_case& k);

}  // namespace hpe::ptx::test
