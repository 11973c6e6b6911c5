// Wrappers for partitioned messages of MPI 4. With MPI_Pready and MPI_Parrived, the program uses parts of a buffer
// while MPI uses other parts. hpe stages whole buffers only, so these wrappers return an error for hpe memory and
// device memory. The error message names the alternative.

#include "interpose/mpi/pending.h"

namespace hpe::interpose::mpi {

namespace {

template <class Next, class Buffer>
int refuse_device_memory(Buffer* buffer, int partitions, MPI_Count count, MPI_Datatype datatype, int rank, int tag,
                         MPI_Comm comm, MPI_Info info, MPI_Request* request, Next& next) {
  if (!concerns_operation(buffer))
    return leave(next(buffer, partitions, count, datatype, rank, tag, comm, info, request));
  return leave(
      raise(on_comm{comm},
            error(HPE_ERROR_NOT_SUPPORTED,
                  "partitioned messages cannot use device memory; instead of MPI_Psend_init or MPI_Precv_init, use "
                  "persistent requests (MPI_Send_init, MPI_Recv_init), one for each part")));
}

}  // namespace

}  // namespace hpe::interpose::mpi

using namespace hpe::interpose::mpi;  // NOLINT(google-build-using-namespace): the functions below are C

#pragma GCC visibility push(default)
extern "C" {

int MPI_Psend_init(const void* buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                   MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return refuse_device_memory(buf, partitions, count, datatype, dest, tag, comm, info, request, HPE_REAL(Psend_init));
}

int MPI_Precv_init(void* buf, int partitions, MPI_Count count, MPI_Datatype datatype, int source, int tag,
                   MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return refuse_device_memory(buf, partitions, count, datatype, source, tag, comm, info, request, HPE_REAL(Precv_init));
}
}
#pragma GCC visibility pop
