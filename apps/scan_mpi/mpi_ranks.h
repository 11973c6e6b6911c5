#pragma once

#define OMPI_SKIP_MPICXX
#include <mpi.h>

#include "apps/scan/scan_ranks.h"

namespace hpe::scan {

/// The ranks of a communicator. MPI itself transfers matrices between devices, by device pointers: the program links
/// libhpe-mpi before its MPI library. The caller initialises and finalises MPI.
class mpi_ranks final : public ranks {
 public:
  explicit mpi_ranks(MPI_Comm among);

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] std::vector<std::uint64_t> all_of(std::uint64_t mine) override;
  void gather(const spread_matrix& shape, const std::byte* mine, std::byte* all) override;
  void scatter(const spread_matrix& shape, const std::byte* all, std::byte* mine) override;

 private:
  enum class way { to_first, from_first };
  /// Sends the columns of all ranks to rank 0, or back. Only rank 0 uses `all`. The sent array does not change.
  void exchange(const spread_matrix& shape, std::byte* mine, std::byte* all, way which);

  MPI_Comm among_;
  int rank_ = 0, size_ = 0;
};

}  // namespace hpe::scan
