#pragma once

/// Carry out collective operations by messages from device to device (near_group.h), in place of MPI's own functions.
/// Each function has the arguments of the MPI function, and returns the result of the program's call. If the ranks must
/// call MPI's own function, the function returns nullopt in all ranks, without effect.
///
/// If all ranks know the sizes of the blocks, and all blocks have fewer than 4096 bytes, the ranks call MPI's own
/// function. For such blocks, MPI's own function is faster if the blocks are in ordinary memory, and nearly as fast if
/// they are in device memory.

#include "interpose/mpi/messages/point_to_point.h"

namespace hpe::interpose::mpi {

/// The form of a call. A blocking call has the name of the function for traces (`function`); a non-blocking call has
/// its request.
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

/// Reductions of at least 64 KiB with a predefined operation, on numbers of a type that hpe's reduction kernels
/// support. A blocking call uses messages if all ranks use device memory of the CUDA driver; a non-blocking call uses
/// messages for any memory. Each rank combines a part of the numbers: on its device if its buffer is in device memory,
/// otherwise on the host. For fewer bytes, these functions return nullopt, because MPI's own function is faster.
taken direct_allreduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                       call_form form = __builtin_FUNCTION());
taken direct_reduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root,
                    MPI_Comm comm, call_form form = __builtin_FUNCTION());
taken direct_reduce_scatter(const void* sendbuf, void* recvbuf, const int* recvcounts, MPI_Datatype datatype, MPI_Op op,
                            MPI_Comm comm, call_form form = __builtin_FUNCTION());
taken direct_reduce_scatter_block(const void* sendbuf, void* recvbuf, int recvcount, MPI_Datatype datatype, MPI_Op op,
                                  MPI_Comm comm, call_form form = __builtin_FUNCTION());

}  // namespace hpe::interpose::mpi
