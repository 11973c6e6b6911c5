// A program with weak references to functions of MPI 4, which it calls if the MPI library has them. The program fails
// if the references do not agree with its argument: `has` if the MPI library has the functions, `lacks` if not.
#include <mpi.h>

#include <cstdio>
#include <cstring>

extern "C" {
// These two functions are declared here because Open MPI 4.1 does not declare them. MPI_Count is a 64-bit number in all
// libraries.
#pragma weak MPI_Send_c
int MPI_Send_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm);
#pragma weak MPI_Recv_c
int MPI_Recv_c(void* buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
               MPI_Status* status);
// All libraries have this function.
#pragma weak MPI_Barrier
}

namespace {

decltype(&MPI_Send_c) const in_data = &MPI_Send_c;
decltype(&MPI_Barrier) const older_in_data = &MPI_Barrier;

int send(const int* numbers, int count, int to) {
  return MPI_Send_c != nullptr ? MPI_Send_c(numbers, count, MPI_INT, to, 1, MPI_COMM_WORLD)
                               : MPI_Send(numbers, count, MPI_INT, to, 1, MPI_COMM_WORLD);
}

int receive(int* numbers, int count, int from) {
  return MPI_Recv_c != nullptr ? MPI_Recv_c(numbers, count, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
                               : MPI_Recv(numbers, count, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const bool expected = argc > 1 && std::strcmp(argv[1], "has") == 0;
  bool right = (MPI_Send_c != nullptr) == expected && (MPI_Recv_c != nullptr) == expected;
  // The program reads these addresses from its data at run time (`volatile`).
  decltype(&MPI_Send_c) const volatile found = in_data;
  right = right && (found != nullptr) == expected;
  decltype(&MPI_Barrier) const volatile older = older_in_data;
  right = right && older != nullptr && older(MPI_COMM_WORLD) == MPI_SUCCESS;
  int number = rank == 0 ? 42 : 0;
  if (rank == 0) send(&number, 1, 1);
  if (rank == 1) receive(&number, 1, 0);
  right = right && number == 42;
  if (right) std::printf("weak references: all right\n");
  MPI_Finalize();
  return right ? 0 : 1;
}
