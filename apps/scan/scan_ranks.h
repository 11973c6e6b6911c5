#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace hpe::scan {

/// A matrix whose columns are divided among ranks, in the order of ranks: rank r has columns[r] columns.
struct spread_matrix {
  std::uint64_t rows = 0;
  std::vector<std::uint64_t> columns;
  std::size_t element_size = 0;

  [[nodiscard]] std::uint64_t before(int rank) const {
    return std::accumulate(columns.begin(), columns.begin() + rank, std::uint64_t{0});
  }
  [[nodiscard]] std::uint64_t all_columns() const { return before(static_cast<int>(columns.size())); }
};

/// The processes that share a scan, and their communication. All processes call all functions except rank() in the same
/// order. Pointers may point to memory of devices. Failures throw hpe::error.
class ranks {
 public:
  virtual ~ranks() = default;

  /// Returns the rank of this process.
  [[nodiscard]] virtual int rank() const = 0;

  /// Returns the numbers that all processes passed, by rank.
  [[nodiscard]] virtual std::vector<std::uint64_t> all_of(std::uint64_t mine) = 0;

  /// Gathers the columns of all processes, row by row in `mine`, into the whole matrix `all` of rank 0; other ranks do
  /// not use `all`.
  virtual void gather(const spread_matrix& shape, const std::byte* mine, std::byte* all) = 0;

  /// Scatters the columns of the matrix `all` of rank 0 to the arrays `mine` of all processes, in the layout of
  /// gather().
  virtual void scatter(const spread_matrix& shape, const std::byte* all, std::byte* mine) = 0;
};

}  // namespace hpe::scan
