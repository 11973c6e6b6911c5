#pragma once

#define OMPI_SKIP_MPICXX
#include <mpi.h>

#include "apps/rtm/rtm_team.h"

namespace hpe::rtm {

/// The ranks of a communicator. Consecutive ranks form a group. MPI itself transfers planes between devices, by device
/// pointers: the program links libhpe-mpi before its MPI library. The caller initialises and finalises MPI.
class mpi_team final : public team {
 public:
  /// Cuts each grid into `parts` slabs. Throws bad_input if the number of ranks is not a multiple of `parts`.
  mpi_team(MPI_Comm among, int parts);
  mpi_team(const mpi_team&) = delete;
  mpi_team& operator=(const mpi_team&) = delete;
  ~mpi_team() override;

  [[nodiscard]] int part() const override { return rank_ % parts_; }
  [[nodiscard]] int parts() const override { return parts_; }
  [[nodiscard]] int group() const override { return rank_ / parts_; }
  [[nodiscard]] int groups() const override { return size_ / parts_; }

  [[nodiscard]] std::unique_ptr<halo_exchange> halo() override;
  [[nodiscard]] std::vector<float> gather(std::vector<float> mine) override;
  [[nodiscard]] std::vector<float> from_group(int group, std::vector<float> mine) override;
  [[nodiscard]] std::int64_t of_first(std::int64_t mine) override;

 private:
  MPI_Comm all_ = MPI_COMM_NULL, group_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 0;
  const int parts_;
};

}  // namespace hpe::rtm
