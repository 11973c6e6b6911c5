#pragma once

/// The MPI library's functions that wait for requests and receives. Some MPI libraries do not call hpe while they wait.
/// With these libraries, and while transfers are in progress, these functions test again and again instead, and
/// continue the transfers in between. The arguments and results are those of MPI's functions.

#include "interpose/mpi/real.h"

namespace hpe::interpose::mpi::waits {

int one(MPI_Request* request, MPI_Status* status);
int any(int count, MPI_Request* requests, int* index, MPI_Status* status);
int all(int count, MPI_Request* requests, MPI_Status* statuses);
int some(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses);
int receive(void* buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status* status);
int exchange(const void* sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag, void* recvbuf,
             int recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status* status);

}  // namespace hpe::interpose::mpi::waits
