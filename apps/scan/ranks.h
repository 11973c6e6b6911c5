#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace hpe::scan {

/// A matrix whose columns are spread over ranks: rank r has columns[r] of them, in the order of ranks.
struct spread_matrix {
  std::uint64_t rows = 0;
  std::vector<std::uint64_t> columns;
  std::size_t element_size = 0;

  [[nodiscard]] std::uint64_t before(int rank) const {
    return std::accumulate(columns.begin(), columns.begin() + rank, std::uint64_t{0});
  }
  [[nodiscard]] std::uint64_t all_columns() const { return before(static_cast<int>(columns.size())); }
};

/// The processes that share a scan, and what they tell each other. Every function but rank is called by all of them, in
/// the same order. Pointers may name memory of devices. Failures throw hpe::error.
class ranks {
 public:
  virtual ~ranks() = default;

  /// This process among them.
  [[nodiscard]] virtual int rank() const = 0;

  /// Everybody's number, by rank.
  [[nodiscard]] virtual std::vector<std::uint64_t> all_of(std::uint64_t mine) = 0;

  /// Brings everybody's columns, row by row in `mine`, into the whole matrix `all` of rank 0; elsewhere `all` is not
  /// used.
  virtual void gather(const spread_matrix& shape, const std::byte* mine, std::byte* all) = 0;

  /// The way back.
  virtual void scatter(const spread_matrix& shape, const std::byte* all, std::byte* mine) = 0;
};

}  // namespace hpe::scan
