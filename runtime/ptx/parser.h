#pragma once

/// PTX text to a program.

#include <memory>

#include "runtime/ptx/program.h"

namespace hpe::ptx {

/// Parses the texts and links them: what is .extern in one is what is .visible in another. The program is verified.
///
/// Throws HPE_ERROR_INVALID_ARGUMENT for what is no PTX and HPE_ERROR_NOT_SUPPORTED for what hpe does not run; both
/// name the line, the instruction and the function.
[[nodiscard]] std::unique_ptr<program> parse(std::vector<std::string> texts);

}  // namespace hpe::ptx
