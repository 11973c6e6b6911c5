#pragma once

/// Files of sparse matrices and graphs, which are text.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apps/command_line/bad_input.h"

namespace hpe::sparse {

using command_line::bad_input;

struct element {
  std::uint32_t row, column;
  double value;
};

/// A matrix as its elements, in the order of the file. An edge of a graph from a to b is an element in row a and column
/// b.
struct contents {
  std::uint64_t rows = 0, columns = 0;
  std::vector<element> elements;
  std::uint32_t source = 0;  ///< a graph's vertex to begin with
};

/// A file in one of two formats, told apart by their first line. Throws bad_input, with file and line, if the file
/// cannot be read or is malformed. Takes memory in proportion to the file's size.
[[nodiscard]] contents read_file(const std::string& path);

/// Matrix Market: coordinates with real, integer or no values (then 1), general, symmetric or skew-symmetric. Dense and
/// complex matrices are refused.
[[nodiscard]] contents matrix_of(std::string_view text, const std::string& name);

/// A graph as Rodinia's programs read it: the number of vertices; for each vertex the number of its first edge and how
/// many it has; the source; the number of edges; for each edge its target and its cost, which becomes the value.
[[nodiscard]] contents graph_of(std::string_view text, const std::string& name);

}  // namespace hpe::sparse
