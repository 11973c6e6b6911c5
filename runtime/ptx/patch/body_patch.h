#pragma once

/// Patches the body of one function or kernel.

#include <set>
#include <string>
#include <unordered_map>

#include "runtime/ptx/patch/edits.h"
#include "runtime/ptx/program/ptx_program.h"

namespace hpe::ptx::patch {

/// The functions and variables of one text, by name.
struct text_names {
  std::unordered_map<std::string_view, const function*> functions;
  std::unordered_map<std::string_view, std::uint32_t> variables;  // by name: the index in the table of addresses
  std::string table;
};

struct body_patch {
  edits changes;
  std::size_t end = 0;   // the offset after the body
  std::string obstacle;  // the reason why the body cannot be patched; empty if it can
};

/// Patches a body. `tokens` must be after the body's '{', and the function reads them up to and including the body's
/// '}'. `parameter` is the name of the function's grid_part parameter; empty if the function has no such parameter.
/// `takes_part`: the functions that have a grid_part parameter.
[[nodiscard]] body_patch patch_body(lexer& tokens, const text_names& names, const std::string& parameter,
                                    const std::set<const function*>& takes_part);

}  // namespace hpe::ptx::patch
