#define OMPI_SKIP_MPICXX
#include <mpi.h>

#include <vector>

#include "apps/command_line/program.h"
#include "bench/machine/device_rates.h"
#include "bench/machine/ranks.h"

namespace hpe::bench {

namespace {

/// Seconds of a message from rank 0 to rank 1; half of one there and back.
double message_seconds(int rank, std::vector<char>& data, std::size_t bytes, unsigned repeats) {
  constexpr int turns = 10;
  const int count = static_cast<int>(bytes), other = 1 - rank;
  const auto send = [&] { MPI_Send(data.data(), count, MPI_CHAR, other, 0, MPI_COMM_WORLD); };
  const auto receive = [&] { MPI_Recv(data.data(), count, MPI_CHAR, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); };
  return fastest_seconds(repeats,
                         [&] {
                           for (int i = 0; i < turns; ++i) {
                             if (rank == 0) send();
                             receive();
                             if (rank == 1) send();
                           }
                         }) /
         (2 * turns);
}

}  // namespace

message_rates measure_messages(std::size_t bytes, unsigned repeats) {
  if (!command_line::one_of_several_ranks()) return {};
  MPI_Init(nullptr, nullptr);
  int rank = 0, on_this_machine = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm neighbours = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &neighbours);
  MPI_Comm_size(neighbours, &on_this_machine);
  MPI_Comm_free(&neighbours);
  message_rates found{rank == 0, std::nullopt, std::nullopt};
  if (rank < 2) {
    std::vector<char> data(bytes, 1);
    const double latency = message_seconds(rank, data, 0, repeats);
    const predict::network messages{static_cast<double>(bytes) / message_seconds(rank, data, bytes, repeats), latency};
    (on_this_machine > 1 ? found.on_one_machine : found.between_machines) = messages;
  }
  MPI_Finalize();  // a rank that has nothing to measure waits here
  return found;
}

}  // namespace hpe::bench
