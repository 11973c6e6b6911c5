#pragma once

/// The point-to-point functions of MPI, for jobs that use the protocol of this folder (job.h). Each function returns
/// the result of the program's call; nullopt, without effect, if MPI must execute the call itself. hpe sends large
/// messages of device memory by envelope (envelope.h), and also small messages if the receiver can copy them from
/// memory of the CUDA driver. Once a rank has passed device memory to MPI (board/receive_inspection.h), hpe inspects
/// each receive whose buffer is large enough for an envelope.
///
/// MPI itself sends the following messages: messages in buffered mode, which must not wait for the receiver; messages
/// to MPI_PROC_NULL; messages in hpe memory to the sender itself, or with datatypes that have gaps; messages on
/// intercommunicators and to processes of other jobs; and messages of MPI_Sendrecv_replace. hpe inspects a smaller
/// receive only after the program has used CUDA or has set an error handler, or while hpe holds messages that it has
/// taken out of MPI (set_aside.h). In other cases, MPI aborts the program when an envelope is too long for the receive.
///
/// `function`: the name of the call in traces.

#include <optional>

#include "interpose/mpi/layout.h"
#include "interpose/mpi/mpi_errors.h"

namespace hpe::interpose::mpi {

using taken = std::optional<int>;

/// Runs action() and returns its result: the result of an MPI call, or nullopt. If action() throws, calls the error
/// handler of `comm` and returns an MPI error.
template <class Action>
taken guarded(MPI_Comm comm, Action&& action) {
  try {
    return raise_errors(on_comm{comm}, action);
  } catch (const left_to_mpi&) {
    return std::nullopt;
  }
}

taken large_send(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                 const char* function = __builtin_FUNCTION());
taken large_ssend(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                  const char* function = __builtin_FUNCTION());
taken large_isend(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                  MPI_Request* request);
taken large_issend(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                   MPI_Request* request);
taken large_send_init(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                      MPI_Request* request);
taken large_ssend_init(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                       MPI_Request* request);

taken any_recv(void* buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status* status,
               const char* function = __builtin_FUNCTION());
taken any_irecv(void* buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request* request);
taken any_recv_init(void* buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request* request);
taken any_mrecv(void* buf, int count, MPI_Datatype type, MPI_Message* message, MPI_Status* status,
                const char* function = __builtin_FUNCTION());
taken any_imrecv(void* buf, int count, MPI_Datatype type, MPI_Message* message, MPI_Request* request);

taken any_sendrecv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag, void* recvbuf,
                   int recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status* status,
                   const char* function = __builtin_FUNCTION());
taken any_sendrecv_replace(void* buf, int count, MPI_Datatype type, int dest, int sendtag, int source, int recvtag,
                           MPI_Comm comm, MPI_Status* status, const char* function = __builtin_FUNCTION());

}  // namespace hpe::interpose::mpi
