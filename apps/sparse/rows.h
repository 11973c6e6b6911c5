#pragma once

/// Sparse matrices and graphs in hpe memory, by compressed rows (kernels/sparse_parameters.h).

#include <cstdint>
#include <string>
#include <vector>

#include "apps/sparse/file.h"
#include "hpe/hpe.hpp"
#include "kernels/gather.h"

namespace hpe::sparse {

/// A matrix, or a graph. It has fewer than 2^32 rows, columns and elements.
template <class T>
struct compressed_rows {
  std::uint64_t rows = 0, columns = 0;
  array<std::uint32_t> first;   ///< index of each row's first element; then the number of elements
  array<std::uint32_t> column;  ///< column of each element
  array<T> values;              ///< value of each element; empty for a graph

  [[nodiscard]] std::uint64_t elements() const { return column.size(); }
};

/// Sizes of random matrices and graphs: each row has `least` to `most` elements, in uniformly random columns.
struct random_shape {
  std::uint64_t rows = 0;
  std::uint64_t least = 1, most = 1;
  std::uint64_t seed = 1;
};

/// Stores the matrix or graph of a file on a device. Throws hpe::error.
template <class T>
[[nodiscard]] compressed_rows<T> compress(const contents& file, int device);

/// Makes a square random matrix with values from -0.5 to 0.5, on a device. Throws hpe::error for 2^32 elements and
/// more.
template <class T>
[[nodiscard]] compressed_rows<T> random_rows(const random_shape& shape, bool with_values, int device);

/// Returns the number of elements of a matrix that random_rows() makes. Throws the same errors as random_rows().
[[nodiscard]] std::uint64_t elements_of(const random_shape& shape);

/// Returns random bits, given their index and a seed.
using kernels::scrambled;

extern template compressed_rows<float> compress(const contents&, int);
extern template compressed_rows<double> compress(const contents&, int);
extern template compressed_rows<float> random_rows(const random_shape&, bool, int);
extern template compressed_rows<double> random_rows(const random_shape&, bool, int);

/// How the threads of a GPU share a row (kernels/sparse_parameters.h).
struct row_sharing {
  std::uint32_t lanes;  ///< threads that share a row: about as many as the mean row has elements
  std::uint32_t each;   ///< elements that a thread loads at a time: 2 if this is enough for the longest row, else 4
};
[[nodiscard]] row_sharing share_rows(const array<std::uint32_t>& first);

/// For programs that use one device: throws bad_input if --devices asks for several devices, or for a device that does
/// not exist.
void check_one_device(std::int64_t devices);

/// Returns the path of libhpe-sparse-kernels.so, in the folder of libhpe.so. Throws hpe::error if the file does not
/// exist.
[[nodiscard]] std::string kernels_file();

/// Returns the grid for `count` elements. On GPUs, a tile processes sparse_threads elements.
[[nodiscard]] hpeShape shape_for(std::uint64_t count, int device);

}  // namespace hpe::sparse
