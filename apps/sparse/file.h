#pragma once

/// Text files of sparse matrices and graphs.

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

/// A matrix as a list of its elements, at most one for each row and column; or a graph as a list of its edges. An edge
/// from a to b is an element in row a and column b; several edges may lead from a to b.
struct contents {
  std::uint64_t rows = 0, columns = 0;
  std::vector<element> elements;
  std::uint32_t source = 0;  ///< the vertex at which a search of the graph begins
};

/// Reads a file in one of two formats, which its first line identifies. Throws bad_input, with file and line, if the
/// file cannot be read or is malformed. The memory that the function uses is proportional to the file's size.
[[nodiscard]] contents read_file(const std::string& path);

/// Parses a Matrix Market file of coordinates, in general, symmetric or skew-symmetric form. Values are real numbers or
/// integers; if the file has no values, all values are 1. Adds the values that the file has for the same row and
/// column. The elements are in ascending order of rows, and in each row of columns. Throws bad_input for dense and
/// complex matrices.
[[nodiscard]] contents matrix_of(std::string_view text, const std::string& name);

/// Parses a graph in the format of Rodinia's programs: the number of vertices; for each vertex, the index of its first
/// edge and the number of its edges; the source; the number of edges; for each edge, its target and its cost. The costs
/// become the values.
[[nodiscard]] contents graph_of(std::string_view text, const std::string& name);

}  // namespace hpe::sparse
