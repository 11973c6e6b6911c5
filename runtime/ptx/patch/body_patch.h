#pragma once

/// The changes to the body of one function or kernel.

#include <set>
#include <string>
#include <unordered_map>

#include "runtime/ptx/patch/edits.h"
#include "runtime/ptx/program/program.h"

namespace hpe::ptx::patch {

/// The functions and variables to which the names in one text refer.
struct text_names {
  std::unordered_map<std::string_view, const function*> functions;
  std::unordered_map<std::string_view, std::uint32_t> variables;  // places in the table of addresses
  std::string table;
};

struct body_patch {
  edits changes;
  std::size_t end = 0;   // behind the body
  std::string obstacle;  // not empty: the body cannot be patched
};

/// Reads a body behind its '{' up to and including its '}'. `parameter` is the name of the grid_part among the
/// function's parameters; empty if it has none. Functions of `takes_part` have such a parameter.
[[nodiscard]] body_patch patch_body(lexer& tokens, const text_names& names, const std::string& parameter,
                                    const std::set<const function*>& takes_part);

}  // namespace hpe::ptx::patch
