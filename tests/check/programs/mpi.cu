// Buffers of MPI that are used before the wait, and queued work whose buffers are passed to MPI too early. Two ranks.
#include <mpi.h>

#include "tests/check/programs/cuda_cases.h"

static int rank;
static volatile int seen;

// Buffers in ordinary memory are watched in whole pages.
constexpr int many = 16 * count;

struct message_of_ints {
  ints p;
  stream a;
  MPI_Request request;
};

static void after_each() {
  wait_for_all();
  MPI_Barrier(MPI_COMM_WORLD);
}

CASE(sent_buffer_changed) {  // mpi-race -
  std::vector<int> x(many);
  MPI_Request request;
  if (rank == 0) {
    MPI_Isend(x.data(), many, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);  // FIRST
    if (!wrong) MPI_Wait(&request, MPI_STATUS_IGNORE);
    x[many / 2] = 1;  // SECOND
    if (wrong) MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(x.data(), many, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

CASE(small_sent_buffer_changed) {  // mpi-race -
  std::vector<int> x(16);
  MPI_Request request;
  if (rank == 0) {
    MPI_Isend(x.data(), 16, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);  // FIRST
    if (!wrong) MPI_Wait(&request, MPI_STATUS_IGNORE);
    x[3] = 1;
    if (wrong) MPI_Wait(&request, MPI_STATUS_IGNORE);  // SECOND
  } else {
    MPI_Recv(x.data(), 16, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

CASE(received_buffer_read) {  // mpi-race -
  std::vector<int> x(many);
  MPI_Request request;
  if (rank == 0) {
    MPI_Send(x.data(), many, MPI_INT, 1, 0, MPI_COMM_WORLD);
  } else {
    MPI_Irecv(x.data(), many, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);  // FIRST
    if (!wrong) MPI_Wait(&request, MPI_STATUS_IGNORE);
    seen = x[many / 2];  // SECOND
    if (wrong) MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

CASE(wait_for_the_wrong_request) {  // mpi-race -
  std::vector<int> x(many), y(many);
  MPI_Request requests[2];
  if (rank == 0) {
    MPI_Send(x.data(), many, MPI_INT, 1, 0, MPI_COMM_WORLD);
    MPI_Send(y.data(), many, MPI_INT, 1, 1, MPI_COMM_WORLD);
  } else {
    MPI_Irecv(x.data(), many, MPI_INT, 0, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(y.data(), many, MPI_INT, 0, 1, MPI_COMM_WORLD, &requests[1]);  // FIRST
    MPI_Wait(&requests[wrong ? 0 : 1], MPI_STATUS_IGNORE);
    seen = y[many / 2];  // SECOND
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
}

CASE(result_of_a_reduction_read) {  // mpi-race -
  std::vector<int> x(many), y(many);
  MPI_Request request;
  MPI_Iallreduce(x.data(), y.data(), many, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);  // FIRST
  if (!wrong) MPI_Wait(&request, MPI_STATUS_IGNORE);
  seen = y[many / 2];  // SECOND
  if (wrong) MPI_Wait(&request, MPI_STATUS_IGNORE);
}

CASE(received_buffer_copied) {  // mpi-race -
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

CASE_WITH(message_of_ints, kernel_on_a_received_buffer) {  // mpi-race add
  if (rank == 0) {
    MPI_Send(p, count, MPI_INT, 1, 0, MPI_COMM_WORLD);
  } else {
    MPI_Irecv(p, count, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);  // FIRST
    if (!wrong) MPI_Wait(&request, MPI_STATUS_IGNORE);
    add<<<4, 256, 0, a>>>(p, count, 1);  // SECOND
    if (wrong) MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

CASE_WITH(message_of_ints, kernel_writes_a_sent_buffer) {  // mpi-race add
  if (rank == 0) {
    MPI_Isend(p, count, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);  // FIRST
    if (!wrong) MPI_Wait(&request, MPI_STATUS_IGNORE);
    add<<<4, 256, 0, a>>>(p, count, 1);  // SECOND
    if (wrong) MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(p, count, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

CASE(sent_before_the_kernel_has_run) {  // mpi-race fill
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

CASE_WITH(pinned_copy, sent_before_the_copy_has_run) {  // mpi-race -
  if (rank == 0) {
    CHECK(cudaMemcpyAsync(x, p, bytes, cudaMemcpyDeviceToHost, a));  // FIRST
    if (!wrong) CHECK(cudaStreamSynchronize(a));
    MPI_Send(x, count, MPI_INT, 1, 0, MPI_COMM_WORLD);  // SECOND
  } else {
    MPI_Recv(x, count, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

CASE_WITH(pinned_copy, received_into_the_source_of_a_copy) {  // mpi-race -
  if (rank == 0) {
    MPI_Send(x, count, MPI_INT, 1, 0, MPI_COMM_WORLD);
  } else {
    CHECK(cudaMemcpyAsync(p, x, bytes, cudaMemcpyHostToDevice, a));  // FIRST
    if (!wrong) CHECK(cudaStreamSynchronize(a));
    MPI_Recv(x, count, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);  // SECOND
  }
}

CASE_WITH(message_of_ints, kernel_between_start_and_wait) {  // mpi-race add
  if (rank == 0) MPI_Send_init(p, count, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);
  for (int n = 0; n < 2; ++n) {
    if (rank == 0) {
      MPI_Start(&request);  // FIRST
      if (!wrong) MPI_Wait(&request, MPI_STATUS_IGNORE);
      add<<<4, 256, 0, a>>>(p, count, 1);  // SECOND
      if (wrong) MPI_Wait(&request, MPI_STATUS_IGNORE);
      CHECK(cudaStreamSynchronize(a));
    } else {
      MPI_Recv(p, count, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
  if (rank == 0) MPI_Request_free(&request);
}

CASE(broadcast_before_the_kernel_has_run) {  // mpi-race fill
  ints p;
  stream a;
  if (rank == 0) {
    fill<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
    if (!wrong) CHECK(cudaStreamSynchronize(a));
  }
  MPI_Bcast(p, count, MPI_INT, 0, MPI_COMM_WORLD);  // SECOND
}

// hpe's MPI_Sendrecv of device memory calls other functions of MPI, which are no calls of the program.
CASE(exchange_before_the_kernel_has_run) {  // mpi-race fill
  ints p, q;
  stream a;
  fill<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
  if (!wrong || rank != 0) CHECK(cudaStreamSynchronize(a));
  MPI_Sendrecv(p, count, MPI_INT, 1 - rank, 0, q, count, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);  // SECOND
}

CASE_WITH(message_of_ints, kernel_before_the_test) {  // mpi-race add
  if (rank == 0) {
    MPI_Send(p, count, MPI_INT, 1, 0, MPI_COMM_WORLD);
  } else {
    MPI_Irecv(p, count, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);  // FIRST
    for (int done = 0; !wrong && done == 0;) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    add<<<4, 256, 0, a>>>(p, count, 1);  // SECOND
    if (wrong) MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

// The kernel may use the other bytes of the array meanwhile.
CASE(kernel_on_the_halo_that_moves) {  // mpi-race add
  ints p;
  stream a;
  MPI_Request requests[2];
  const int halo = 128, neighbour = 1 - rank;
  MPI_Irecv(p, halo, MPI_INT, neighbour, 0, MPI_COMM_WORLD, &requests[0]);  // FIRST
  MPI_Isend(p + count - halo, halo, MPI_INT, neighbour, 0, MPI_COMM_WORLD, &requests[1]);
  const int first = wrong && rank == 0 ? 0 : halo;
  add<<<4, 256, 0, a>>>(p + first, count - 2 * halo, 1);  // SECOND
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  wait_for_all();  // on GPUs, the check begins with the first call of CUDA
  const int status = run_cases(argc, argv, after_each);
  MPI_Finalize();
  return status;
}
