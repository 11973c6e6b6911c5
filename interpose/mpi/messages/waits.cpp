#include "interpose/mpi/messages/waits.h"

#include "interpose/mpi/messages/message_progress.h"

namespace hpe::interpose::mpi::waits {

namespace {

bool are_own() { return progress::of_process().continues_itself(); }

// Calls test(&flag) until it fails or sets the flag, and continues transfers in between. Continues them once more at
// the end, because the program may know that messages which it sent or received earlier have arrived, too.
template <class Test>
int repeated(Test&& test) {
  int flag = 0;
  int result = MPI_SUCCESS;
  progress::of_process().until([&] {
    result = test(&flag);
    return result != MPI_SUCCESS || flag != 0;
  });
  progress::of_process().help();
  return result;
}

}  // namespace

int one(MPI_Request* request, MPI_Status* status) {
  if (!are_own()) return HPE_REAL(Wait)(request, status);
  return repeated([&](int* flag) { return HPE_REAL(Test)(request, flag, status); });
}

int any(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  if (!are_own()) return HPE_REAL(Waitany)(count, requests, index, status);
  return repeated([&](int* flag) { return HPE_REAL(Testany)(count, requests, index, flag, status); });
}

int all(int count, MPI_Request* requests, MPI_Status* statuses) {
  if (!are_own()) return HPE_REAL(Waitall)(count, requests, statuses);
  return repeated([&](int* flag) { return HPE_REAL(Testall)(count, requests, flag, statuses); });
}

int some(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
  if (!are_own()) return HPE_REAL(Waitsome)(count, requests, done, indices, statuses);
  return repeated([&](int* flag) {
    const int result = HPE_REAL(Testsome)(count, requests, done, indices, statuses);
    *flag = *done != 0 ? 1 : 0;  // MPI_UNDEFINED: no request is active
    return result;
  });
}

int receive(void* buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status* status) {
  if (!are_own()) return HPE_REAL(Recv)(buf, count, type, source, tag, comm, status);
  MPI_Request request = handles::get().request_null;
  const int begun = HPE_REAL(Irecv)(buf, count, type, source, tag, comm, &request);
  return begun == MPI_SUCCESS ? one(&request, status) : begun;
}

int exchange(const void* sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag, void* recvbuf,
             int recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status* status) {
  if (!are_own())
    return HPE_REAL(Sendrecv)(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source,
                              recvtag, comm, status);
  MPI_Request receiving = handles::get().request_null;
  MPI_Request sending = handles::get().request_null;
  if (const int failed = HPE_REAL(Irecv)(recvbuf, recvcount, recvtype, source, recvtag, comm, &receiving);
      failed != MPI_SUCCESS)
    return failed;
  const int begun = HPE_REAL(Isend)(sendbuf, sendcount, sendtype, dest, sendtag, comm, &sending);
  if (begun != MPI_SUCCESS) {
    HPE_REAL(Cancel)(&receiving);
    one(&receiving, MPI_STATUS_IGNORE);
    return begun;
  }
  const int received = one(&receiving, status);
  const int sent = one(&sending, MPI_STATUS_IGNORE);
  return received != MPI_SUCCESS ? received : sent;
}

}  // namespace hpe::interpose::mpi::waits
