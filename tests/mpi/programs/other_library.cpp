// A program that is not linked with libhpe-mpi.so. It uses messages, requests, a datatype, a window and a collective
// call, with host memory or, with the argument `device`, with hpe memory. Without hpe's wrappers, MPI itself accesses
// the hpe memory.
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "hpe/hpe.hpp"

namespace {

bool exchange(int* numbers, int count, int rank) {
  const int other = 1 - rank;
  for (int i = 0; i < count; ++i) numbers[i] = rank * count + i;
  std::vector<int> got(static_cast<std::size_t>(count));
  MPI_Request requests[2];
  MPI_Status statuses[2];
  MPI_Irecv(got.data(), count, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(numbers, count, MPI_INT, other, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, statuses);
  int size = 0;
  MPI_Get_count(&statuses[0], MPI_INT, &size);
  bool right = size == count && statuses[0].MPI_SOURCE == other;
  for (int i = 0; i < count; ++i) right = right && got[static_cast<std::size_t>(i)] == other * count + i;

  // Receives into every second number, after a probe.
  MPI_Datatype strided = MPI_DATATYPE_NULL;
  MPI_Type_vector(count / 2, 1, 2, MPI_INT, &strided);
  MPI_Type_commit(&strided);
  if (rank == 0) {
    MPI_Send(numbers, 1, strided, 1, 2, MPI_COMM_WORLD);
  } else {
    MPI_Status met;
    MPI_Probe(0, 2, MPI_COMM_WORLD, &met);
    MPI_Recv(numbers, 1, strided, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; ++i) right = right && numbers[i] == (i % 2 == 0 ? i : count + i);
  }
  MPI_Type_free(&strided);

  int sum = 0;
  const int mine = rank + 1;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_create(numbers, static_cast<MPI_Aint>(sizeof(int)) * count, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                 &window);
  MPI_Win_fence(0, window);
  MPI_Put(&mine, 1, MPI_INT, other, 3, 1, MPI_INT, window);
  MPI_Win_fence(0, window);
  right = right && numbers[3] == other + 1 && sum == 3;
  MPI_Win_free(&window);
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  constexpr int count = 1 << 18;
  std::vector<int> host(count);
  bool right = exchange(host.data(), count, rank);
  if (argc > 1 && std::strcmp(argv[1], "device") == 0) {
    const hpe::array<int> device(count);
    right = exchange(device.data(), count, rank) && right;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (right) std::printf("other library: all right\n");
  MPI_Finalize();
  return right ? 0 : 1;
}
