#pragma once

/// Collective functions of MPI as messages from device to device (near_group.h). Each function here has the arguments
/// of the blocking function, or of the non-blocking one. It returns the result of the call, or nothing, without an
/// effect, if the call goes through MPI's own function, in all ranks alike.
///
/// Blocks of less than 4096 bytes go through MPI, where all ranks know their size. MPI's own functions are faster with
/// them in ordinary memory, and nearly as fast with staged device memory.

#include "interpose/mpi/messages/point_to_point.h"

namespace hpe::interpose::mpi {

/// A blocking call, by the name that traces show, or a non-blocking one, by its request.
struct call_form {
  call_form(const char* function) : function(function) {}  // NOLINT(google-explicit-constructor): the last argument
  call_form(MPI_Request* request) : request(request) {}    // NOLINT(google-explicit-constructor): of the calls below

  const char* function = nullptr;
  MPI_Request* request = nullptr;
};

taken direct_alltoall(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                      MPI_Datatype recvtype, MPI_Comm comm, call_form form = __builtin_FUNCTION());
taken direct_alltoallv(const void* sendbuf, const int* sendcounts, const int* sdispls, MPI_Datatype sendtype,
                       void* recvbuf, const int* recvcounts, const int* rdispls, MPI_Datatype recvtype, MPI_Comm comm,
                       call_form form = __builtin_FUNCTION());
taken direct_allgather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                       MPI_Datatype recvtype, MPI_Comm comm, call_form form = __builtin_FUNCTION());
taken direct_allgatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, const int* recvcounts,
                        const int* displs, MPI_Datatype recvtype, MPI_Comm comm, call_form form = __builtin_FUNCTION());
taken direct_bcast(void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm,
                   call_form form = __builtin_FUNCTION());
taken direct_gather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                    MPI_Datatype recvtype, int root, MPI_Comm comm, call_form form = __builtin_FUNCTION());
taken direct_gatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, const int* recvcounts,
                     const int* displs, MPI_Datatype recvtype, int root, MPI_Comm comm,
                     call_form form = __builtin_FUNCTION());
taken direct_scatter(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                     MPI_Datatype recvtype, int root, MPI_Comm comm, call_form form = __builtin_FUNCTION());
taken direct_scatterv(const void* sendbuf, const int* sendcounts, const int* displs, MPI_Datatype sendtype,
                      void* recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                      call_form form = __builtin_FUNCTION());

/// Reductions of at least 64 KiB by a predefined operation, of numbers that kernels know: a blocking call if all ranks
/// use device memory, a non-blocking one in any memory. Each rank combines a part of the numbers, on its device if its
/// memory is there. MPI is faster with fewer bytes.
taken direct_allreduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                       call_form form = __builtin_FUNCTION());
taken direct_reduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root,
                    MPI_Comm comm, call_form form = __builtin_FUNCTION());

}  // namespace hpe::interpose::mpi
