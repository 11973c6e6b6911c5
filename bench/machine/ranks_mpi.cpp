#define OMPI_SKIP_MPICXX
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>
#include <vector>

#include "apps/command_line/program.h"
#include "bench/common/measure.h"
#include "bench/machine/device_rates.h"
#include "bench/machine/ranks.h"

namespace hpe::bench {

namespace {

/// Times messages between the first ranks.
class messenger {
 public:
  messenger(int rank, std::size_t bytes, unsigned repeats)
      : rank_(rank), repeats_(repeats), out_(bytes, 1), in_(bytes) {}

  /// Returns the seconds of a message from rank 0 to rank 1: half of the time of a message and its reply of the same
  /// size.
  [[nodiscard]] double one_way(std::size_t bytes) {
    return seconds_of_a_turn([&] {
             const int count = static_cast<int>(bytes);
             if (rank_ == 0) MPI_Send(out_.data(), count, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
             MPI_Recv(in_.data(), count, MPI_CHAR, 1 - rank_, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
             if (rank_ == 1) MPI_Send(out_.data(), count, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
           }) /
           2;
  }
  /// Returns the seconds in which each of the first `ranks` ranks sends a message to the next rank and receives one
  /// from the previous rank. The ranks wait for each other before each turn, as in programs that compute between
  /// messages; otherwise, messages of consecutive turns would overlap.
  [[nodiscard]] double around(int ranks, std::size_t bytes) {
    MPI_Comm these = MPI_COMM_NULL;
    MPI_Group all = MPI_GROUP_NULL, first = MPI_GROUP_NULL;
    int range[1][3] = {{0, ranks - 1, 1}};
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_range_incl(all, 1, range, &first);
    MPI_Comm_create_group(MPI_COMM_WORLD, first, 0, &these);
    double fastest = std::numeric_limits<double>::infinity();
    for (unsigned i = 0; i < repeats_; ++i) {
      double sum = 0;
      for (int n = 0; n < turns; ++n) {
        MPI_Barrier(these);
        const double begin = MPI_Wtime();
        const int count = static_cast<int>(bytes);
        MPI_Sendrecv(out_.data(), count, MPI_CHAR, (rank_ + 1) % ranks, 0, in_.data(), count, MPI_CHAR,
                     (rank_ + ranks - 1) % ranks, 0, these, MPI_STATUS_IGNORE);
        MPI_Barrier(these);
        sum += MPI_Wtime() - begin;
      }
      fastest = std::min(fastest, sum / turns);
    }
    for (MPI_Group* const g : {&all, &first}) MPI_Group_free(g);
    MPI_Comm_free(&these);
    return fastest;
  }

 private:
  static constexpr int turns = 10;

  [[nodiscard]] double seconds_of_a_turn(const std::function<void()>& turn) const {
    return fastest_seconds(repeats_,
                           [&] {
                             for (int i = 0; i < turns; ++i) turn();
                           }) /
           turns;
  }

  const int rank_;
  const unsigned repeats_;
  std::vector<char> out_, in_;
};

int most_ranks_of_a_machine() {
  MPI_Comm neighbours = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &neighbours);
  int here = 0, most = 0;
  MPI_Comm_size(neighbours, &here);
  MPI_Comm_free(&neighbours);
  MPI_Allreduce(&here, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return most;
}

}  // namespace

ranks::ranks(char** /*argv*/) {
  if (!command_line::one_of_several_ranks()) return;
  MPI_Init(nullptr, nullptr);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  machines_ = most_ranks_of_a_machine() == 1 ? size_ : 1;
}

ranks::~ranks() {
  if (command_line::one_of_several_ranks()) MPI_Finalize();
}

message_rates ranks::messages(std::size_t bytes, unsigned repeats) {
  message_rates found;
  if (!command_line::one_of_several_ranks()) return found;
  messenger with_others(rank_, bytes, repeats);
  predict::network measured{};
  const double size = static_cast<double>(bytes);
  if (rank_ < 2) {
    measured.latency = with_others.one_way(0);
    measured.rate = size / with_others.one_way(bytes);
  }
  std::vector<predict::shared_rate> together{{1, measured.rate}};
  for (const int ranks : numbers_of_devices(size_)) {
    wait_for_all();
    if (ranks > 1 && rank_ < ranks) together.push_back({ranks, size / with_others.around(ranks, bytes)});
  }
  wait_for_all();
  if (!leads()) return found;
  measured.together = predict::rate_table(std::move(together));
  (machines_ == 1 ? found.on_one_machine : found.between_machines) = measured;
  return found;
}

double ranks::seconds_on(int machines, unsigned repeats, const std::function<void()>& body) {
  double fastest = 0;
  // The first run warms up and is not counted.
  for (unsigned i = 0; i <= repeats; ++i) {
    wait_for_all();
    const double begin = now();
    if (rank_ < machines) body();
    const double mine = rank_ < machines ? now() - begin : 0;
    double slowest = mine;
    wait_for_all();
    if (command_line::one_of_several_ranks()) MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (i > 0) fastest = i == 1 ? slowest : std::min(fastest, slowest);
  }
  return fastest;
}

void ranks::wait_for_all() {
  if (!command_line::one_of_several_ranks()) return;
  MPI_Request all = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &all);
  for (int done = 0; MPI_Test(&all, &done, MPI_STATUS_IGNORE), done == 0;)
    std::this_thread::sleep_for(std::chrono::microseconds(200));
}

}  // namespace hpe::bench
