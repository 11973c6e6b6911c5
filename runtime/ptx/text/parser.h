#pragma once

/// Parses PTX text.

#include <memory>

#include "runtime/ptx/program/ptx_program.h"

namespace hpe::ptx {

/// How the lanes (threads) of a warp run.
enum class warp_order : std::uint8_t {
  independent,  ///< each lane runs independently to its next meeting (call_graph.h), as PTX allows
  lockstep,     ///< the lanes run together, one memory access at a time, as on GPUs before Volta
};

/// What parse() does with a function that contains an instruction that hpe does not support, or with a variable of an
/// unknown type.
enum class unknown_code : std::uint8_t {
  refused,   ///< parse() throws
  left_out,  ///< parse() removes the code of this function, or of each function that names the variable;
             ///< function::left_out contains the reason
};

/// Parses PTX texts, links .extern symbols of one text to .visible symbols of another, and verifies the program.
///
/// Throws HPE_ERROR_INVALID_ARGUMENT for invalid PTX and HPE_ERROR_NOT_SUPPORTED for PTX that hpe cannot run; the
/// message names the line if there is one, and, for an error in an instruction that was parsed, the instruction and the
/// function.
[[nodiscard]] std::unique_ptr<program> parse(std::vector<std::string> texts, warp_order order = warp_order::independent,
                                             unknown_code unknown = unknown_code::refused);

}  // namespace hpe::ptx
