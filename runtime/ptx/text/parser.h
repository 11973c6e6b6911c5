#pragma once

/// Parses PTX text.

#include <memory>

#include "runtime/ptx/program/program.h"

namespace hpe::ptx {

/// How the lanes of a warp run.
enum class warp_order : std::uint8_t {
  independent,  ///< each by itself to the next meeting, as PTX allows
  lockstep,     ///< together, an access to memory at a time, as GPUs before Volta ran them
};

/// Parses texts, links them (.extern symbols of one text to .visible symbols of another) and verifies the program.
///
/// Throws HPE_ERROR_INVALID_ARGUMENT for invalid PTX and HPE_ERROR_NOT_SUPPORTED for PTX that hpe cannot run; the
/// message names the line, the instruction and the function.
[[nodiscard]] std::unique_ptr<program> parse(std::vector<std::string> texts,
                                             warp_order order = warp_order::independent);

}  // namespace hpe::ptx
