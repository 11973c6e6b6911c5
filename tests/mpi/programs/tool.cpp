// A tool that uses MPI's profiling interface. The test preloads it after hpe. The tool counts calls of three functions.
#include <mpi.h>

#include <cstdio>

namespace {

int sends = 0;
int waits = 0;
int reductions = 0;

}  // namespace

extern "C" {

int MPI_Isend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
              MPI_Request* request) {
  ++sends;
  return PMPI_Isend(buf, count, datatype, dest, tag, comm, request);
}

int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  ++waits;
  return PMPI_Waitall(count, requests, statuses);
}

int MPI_Allreduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
  ++reductions;
  return PMPI_Allreduce(sendbuf, recvbuf, count, datatype, op, comm);
}

int MPI_Finalize() {
  std::printf("tool: %d MPI_Isend, %d MPI_Waitall, %d MPI_Allreduce\n", sends, waits, reductions);
  return PMPI_Finalize();
}
}
