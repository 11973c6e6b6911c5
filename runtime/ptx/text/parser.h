#pragma once

/// Parses PTX text.

#include <memory>

#include "runtime/ptx/program/program.h"

namespace hpe::ptx {

/// How the lanes of a warp run.
enum class warp_order : std::uint8_t {
  independent,  ///< each lane runs independently to its next meeting, as PTX allows
  lockstep,     ///< the lanes run together, one memory access at a time, as on GPUs before Volta
};

/// What parse() does with a function whose code hpe does not know, and with a variable of an unknown type.
enum class unknown_code : std::uint8_t {
  refused,   ///< parse throws
  left_out,  ///< this function, or each function that names the variable, has no code; function::left_out says why
};

/// Parses texts, links them (.extern symbols of one text to .visible symbols of another) and verifies the program.
///
/// Throws HPE_ERROR_INVALID_ARGUMENT for invalid PTX and HPE_ERROR_NOT_SUPPORTED for PTX that hpe cannot run; the
/// message names the line, the instruction and the function.
[[nodiscard]] std::unique_ptr<program> parse(std::vector<std::string> texts, warp_order order = warp_order::independent,
                                             unknown_code unknown = unknown_code::refused);

}  // namespace hpe::ptx
