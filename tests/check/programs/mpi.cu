// Buffers of MPI that are used before the wait, and queued work whose buffers are passed to MPI too early. Two ranks.
#include <mpi.h>

#include "tests/check/programs/cuda_cases.h"

static int rank;
static volatile int seen;

static void after_each() {
  wait_for_all();
  MPI_Barrier(MPI_COMM_WORLD);
}

CASE(sent_buffer_changed) {  // mpi-buffer - (not found)
  std::vector<int> x(count);
  MPI_Request request;
  if (rank == 0) {
    MPI_Isend(x.data(), count, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);  // FIRST
    if (!wrong) MPI_Wait(&request, MPI_STATUS_IGNORE);
    x[100] = 1;  // SECOND
    if (wrong) MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(x.data(), count, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

CASE(received_buffer_read) {  // mpi-buffer - (not found)
  std::vector<int> x(count);
  MPI_Request request;
  if (rank == 0) {
    MPI_Send(x.data(), count, MPI_INT, 1, 0, MPI_COMM_WORLD);
  } else {
    MPI_Irecv(x.data(), count, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);  // FIRST
    if (!wrong) MPI_Wait(&request, MPI_STATUS_IGNORE);
    seen = x[100];  // SECOND
    if (wrong) MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

CASE(wait_for_the_wrong_request) {  // mpi-buffer - (not found)
  std::vector<int> x(count), y(count);
  MPI_Request requests[2];
  if (rank == 0) {
    MPI_Send(x.data(), count, MPI_INT, 1, 0, MPI_COMM_WORLD);
    MPI_Send(y.data(), count, MPI_INT, 1, 1, MPI_COMM_WORLD);
  } else {
    MPI_Irecv(x.data(), count, MPI_INT, 0, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(y.data(), count, MPI_INT, 0, 1, MPI_COMM_WORLD, &requests[1]);  // FIRST
    MPI_Wait(&requests[wrong ? 0 : 1], MPI_STATUS_IGNORE);
    seen = y[100];  // SECOND
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
}

CASE(result_of_a_reduction_read) {  // mpi-buffer - (not found)
  std::vector<int> x(count), y(count);
  MPI_Request request;
  MPI_Iallreduce(x.data(), y.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);  // FIRST
  if (!wrong) MPI_Wait(&request, MPI_STATUS_IGNORE);
  seen = y[100];  // SECOND
  if (wrong) MPI_Wait(&request, MPI_STATUS_IGNORE);
}

CASE(received_buffer_copied) {  // mpi-buffer - (not found)
  pinned_ints x;
  ints p;
  stream a;
  MPI_Request request;
  if (rank == 0) {
    MPI_Send(x, count, MPI_INT, 1, 0, MPI_COMM_WORLD);
  } else {
    MPI_Irecv(x, count, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);  // FIRST
    if (!wrong) MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(cudaMemcpyAsync(p, x, bytes, cudaMemcpyHostToDevice, a));  // SECOND
    if (wrong) MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

CASE(kernel_on_a_received_buffer) {  // mpi-buffer add (not found)
  ints p;
  stream a;
  MPI_Request request;
  if (rank == 0) {
    MPI_Send(p, count, MPI_INT, 1, 0, MPI_COMM_WORLD);
  } else {
    MPI_Irecv(p, count, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);  // FIRST
    if (!wrong) MPI_Wait(&request, MPI_STATUS_IGNORE);
    add<<<4, 256, 0, a>>>(p, count, 1);  // SECOND
    if (wrong) MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

CASE(kernel_writes_a_sent_buffer) {  // mpi-buffer add (not found)
  ints p;
  stream a;
  MPI_Request request;
  if (rank == 0) {
    MPI_Isend(p, count, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);  // FIRST
    if (!wrong) MPI_Wait(&request, MPI_STATUS_IGNORE);
    add<<<4, 256, 0, a>>>(p, count, 1);  // SECOND
    if (wrong) MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(p, count, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

CASE(sent_before_the_kernel_has_run) {  // mpi-buffer|stream-race|host-touch fill (not found)
  ints p;
  stream a;
  if (rank == 0) {
    fill<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
    if (!wrong) CHECK(cudaStreamSynchronize(a));
    MPI_Send(p, count, MPI_INT, 1, 0, MPI_COMM_WORLD);  // SECOND
  } else {
    MPI_Recv(p, count, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

CASE(sent_before_the_copy_has_run) {  // mpi-buffer|host-touch - (not found)
  ints p;
  pinned_ints x;
  stream a;
  if (rank == 0) {
    CHECK(cudaMemcpyAsync(x, p, bytes, cudaMemcpyDeviceToHost, a));  // FIRST
    if (!wrong) CHECK(cudaStreamSynchronize(a));
    MPI_Send(x, count, MPI_INT, 1, 0, MPI_COMM_WORLD);  // SECOND
  } else {
    MPI_Recv(x, count, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

CASE(received_into_the_source_of_a_copy) {  // mpi-buffer|source-changed - (not found)
  ints p;
  pinned_ints x;
  stream a;
  if (rank == 0) {
    MPI_Send(x, count, MPI_INT, 1, 0, MPI_COMM_WORLD);
  } else {
    CHECK(cudaMemcpyAsync(p, x, bytes, cudaMemcpyHostToDevice, a));  // FIRST
    if (!wrong) CHECK(cudaStreamSynchronize(a));
    MPI_Recv(x, count, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);  // SECOND
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int status = run_cases(argc, argv, after_each);
  MPI_Finalize();
  return status;
}
