#include "apps/rtm_mpi/mpi_team.h"

#include <limits>
#include <string>

#include "apps/command_line/bad_input.h"
#include "apps/ranks/mpi_check.h"
#include "hpe/error.hpp"

namespace hpe::rtm {

namespace {

using hpe::ranks::check;

int counted(std::size_t number) {
  if (number > std::numeric_limits<int>::max())
    throw error(HPE_ERROR_NOT_SUPPORTED, "a message of " + std::to_string(number) +
                                             " cells: MPI counts only up to 2^31 - 1; cut the grid into more parts");
  return static_cast<int>(number);
}

/// The message tags of planes for the previous and the next part, and of values for the first process.
constexpr int downward = 1, upward = 2, values = 3;

class mpi_halo final : public halo_exchange {
 public:
  explicit mpi_halo(MPI_Comm group) : group_(group) {
    check(MPI_Comm_rank(group, &part_), "MPI_Comm_rank");
    check(MPI_Comm_size(group, &parts_), "MPI_Comm_size");
  }
  mpi_halo(const mpi_halo&) = delete;
  mpi_halo& operator=(const mpi_halo&) = delete;
  ~mpi_halo() override { MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE); }

  void begin(std::span<float> first, std::span<float> before, std::span<float> last, std::span<float> after) override {
    const auto request = [this] { return &requests_.emplace_back(MPI_REQUEST_NULL); };
    requests_.reserve(4);
    const int lower = part_ - 1, higher = part_ + 1;
    if (part_ > 0)
      check(MPI_Irecv(before.data(), counted(before.size()), MPI_FLOAT, lower, upward, group_, request()), "MPI_Irecv");
    if (higher < parts_)
      check(MPI_Irecv(after.data(), counted(after.size()), MPI_FLOAT, higher, downward, group_, request()),
            "MPI_Irecv");
    if (part_ > 0)
      check(MPI_Isend(first.data(), counted(first.size()), MPI_FLOAT, lower, downward, group_, request()), "MPI_Isend");
    if (higher < parts_)
      check(MPI_Isend(last.data(), counted(last.size()), MPI_FLOAT, higher, upward, group_, request()), "MPI_Isend");
  }

  void finish() override {
    check(MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    requests_.clear();
  }

 private:
  const MPI_Comm group_;
  int part_ = 0, parts_ = 0;
  std::vector<MPI_Request> requests_;
};

int rank_in(MPI_Comm among) {
  int rank = 0;
  check(MPI_Comm_rank(among, &rank), "MPI_Comm_rank");
  return rank;
}

}  // namespace

mpi_team::mpi_team(MPI_Comm among, int parts) : rank_(rank_in(among)), parts_(parts) {
  check(MPI_Comm_size(among, &size_), "MPI_Comm_size");
  if (parts < 1 || size_ % parts != 0)
    throw command_line::bad_input("--parts " + std::to_string(parts) + ": the number of ranks, " +
                                  std::to_string(size_) + ", must be a multiple of the number of parts");
  check(MPI_Comm_dup(among, &all_), "MPI_Comm_dup");
  check(MPI_Comm_split(among, group(), part(), &group_), "MPI_Comm_split");
}

mpi_team::~mpi_team() {
  if (group_ != MPI_COMM_NULL) MPI_Comm_free(&group_);
  if (all_ != MPI_COMM_NULL) MPI_Comm_free(&all_);
}

std::unique_ptr<halo_exchange> mpi_team::halo() { return parts_ > 1 ? std::make_unique<mpi_halo>(group_) : nullptr; }

std::vector<float> mpi_team::gather(std::vector<float> mine) {
  if (parts_ == 1) return mine;
  const int count = counted(mine.size());
  std::vector<int> counts(static_cast<std::size_t>(parts_)), places(counts.size());
  check(MPI_Gather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, 0, group_), "MPI_Gather");
  std::vector<float> all;
  if (part() == 0) {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      places[i] = counted(sum);
      sum += static_cast<std::size_t>(counts[i]);
    }
    all.resize(sum);
  }
  check(MPI_Gatherv(mine.data(), count, MPI_FLOAT, all.data(), counts.data(), places.data(), MPI_FLOAT, 0, group_),
        "MPI_Gatherv");
  return all;
}

std::vector<float> mpi_team::from_group(int group, std::vector<float> mine) {
  if (group == 0) return first() ? mine : std::vector<float>{};
  const int sender = group * parts_;
  if (rank_ == sender) check(MPI_Send(mine.data(), counted(mine.size()), MPI_FLOAT, 0, values, all_), "MPI_Send");
  if (rank_ != 0) return {};
  MPI_Status status;
  int count = 0;
  check(MPI_Probe(sender, values, all_, &status), "MPI_Probe");
  check(MPI_Get_count(&status, MPI_FLOAT, &count), "MPI_Get_count");
  std::vector<float> all(static_cast<std::size_t>(count));
  check(MPI_Recv(all.data(), count, MPI_FLOAT, sender, values, all_, MPI_STATUS_IGNORE), "MPI_Recv");
  return all;
}

std::int64_t mpi_team::of_first(std::int64_t mine) {
  check(MPI_Bcast(&mine, 1, MPI_INT64_T, 0, all_), "MPI_Bcast");
  return mine;
}

}  // namespace hpe::rtm
