#pragma once

/// Indices from files: NumPy's .npy with one axis of 32- or 64-bit integers, and JSON patterns of Spatter
/// (https://github.com/hpcgarage/spatter), which describe the accesses of applications.

#include <cstdint>
#include <string>
#include <vector>

#include "apps/command_line/bad_input.h"

namespace hpe::gather {

using command_line::bad_input;

/// The largest number of indices that a pattern may have.
inline constexpr std::uint64_t most_indices = std::uint64_t{1} << 30;
/// The largest index of a pattern, and of a table whose size follows from its indices.
inline constexpr std::uint64_t largest_index = std::uint64_t{1} << 55;

/// Reads a file; `pattern` is the number of a pattern in a .json file, from 0. Throws bad_input with the reason if the
/// file cannot be read, an index is negative, or a pattern has more than most_indices indices.
[[nodiscard]] std::vector<std::uint64_t> read_indices(const std::string& path, std::uint64_t pattern);

/// Returns the indices of a pattern in a JSON text. The elements of its key `pattern` are repeated as often as the key
/// `count` (or `length`; default 1024) says, and each repetition is the previous one plus the key `delta` (default 8,
/// or 1 for LAPLACIAN). If `delta` is a list, its values are used in turn. A pattern is a list, or a text: numbers with
/// commas, UNIFORM:LENGTH:GAP, MS1:LENGTH:PLACES:GAPS or LAPLACIAN:DIMENSIONS:ORDER:SIZE. Only the kernels Gather and
/// Scatter have a single pattern; other kernels are refused. `file` names the text in messages. Throws bad_input.
[[nodiscard]] std::vector<std::uint64_t> indices_of_json(const std::string& text, std::uint64_t pattern,
                                                         const std::string& file, std::uint64_t most = most_indices);

}  // namespace hpe::gather
