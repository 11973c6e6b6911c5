// Work of two ranks on memory that one of them has exported and the other one has opened (cudaIpcGetMemHandle).
#include <mpi.h>

#include "tests/check/programs/cuda_cases.h"

static int rank;

static void barrier() { MPI_Barrier(MPI_COMM_WORLD); }

static void after_each() {
  wait_for_all();
  barrier();
}

// Rank 1 opens memory of rank 0.
static int* opened(int* p) {
  cudaIpcMemHandle_t handle;
  if (rank == 0) CHECK(cudaIpcGetMemHandle(&handle, p));
  MPI_Bcast(&handle, sizeof handle, MPI_BYTE, 0, MPI_COMM_WORLD);
  if (rank == 1) CHECK(cudaIpcOpenMemHandle((void**)&p, handle, cudaIpcMemLazyEnablePeerAccess));
  return p;
}

static void close_and_free(int* p) {
  wait_for_all();
  if (rank == 1) CHECK(cudaIpcCloseMemHandle(p));
  barrier();
  if (rank == 0) CHECK(cudaFree(p));
}

// `count` zeros of rank 0, which rank 1 has opened.
struct shared_ints : int_memory {
  shared_ints() {
    if (rank == 0) {
      CHECK(cudaMalloc(&p, bytes));
      CHECK(cudaMemset(p, 0, bytes));
      CHECK(cudaDeviceSynchronize());
    }
    p = opened(p);
  }
  ~shared_ints() { close_and_free(p); }
};

struct shared_work {
  shared_ints p;
  ints q;
  stream a;
};

CASE_WITH(shared_work, copy_after_the_barrier) {  // rank-race fill
  if (rank == 0) {
    fill<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
    if (!wrong) CHECK(cudaStreamSynchronize(a));
  }
  barrier();
  if (rank == 1) {
    CHECK(cudaMemcpyAsync(q, p, bytes, cudaMemcpyDeviceToDevice, a));  // SECOND
    CHECK(cudaStreamSynchronize(a));
  }
  barrier();
}

CASE_WITH(shared_work, kernel_after_the_message) {  // rank-race twice
  int message = 0;
  if (rank == 0) {
    fill<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
    if (!wrong) CHECK(cudaStreamSynchronize(a));
    MPI_Send(&message, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
  } else {
    MPI_Recv(&message, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    twice<<<4, 256, 0, a>>>(q, p, count);  // SECOND
    CHECK(cudaStreamSynchronize(a));
  }
  barrier();
}

CASE(written_while_the_owner_reads) {  // rank-race fill
  shared_ints p;
  pinned_ints x;
  stream a;
  if (rank == 0) {
    CHECK(cudaMemcpyAsync(x, p, bytes, cudaMemcpyDeviceToHost, a));  // FIRST
    if (!wrong) CHECK(cudaStreamSynchronize(a));
  }
  barrier();
  if (rank == 1) {
    fill<<<4, 256, 0, a>>>(p, count, 1);  // SECOND
    CHECK(cudaStreamSynchronize(a));
  }
  barrier();
}

CASE_WITH(shared_work, read_before_the_other_rank_has_written) {  // rank-race fill
  if (rank == 1) {
    fill<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
    if (!wrong) CHECK(cudaStreamSynchronize(a));
  }
  barrier();
  if (rank == 0) {
    twice<<<4, 256, 0, a>>>(q, p, count);  // SECOND
    CHECK(cudaStreamSynchronize(a));
  }
  barrier();
}

// The ranks need no order as long as their halves do not overlap.
CASE(halves_that_overlap) {  // rank-race fill
  shared_ints p;
  stream a;
  const int half = count / 2;
  if (rank == 0)
    fill<<<4, 256, 0, a>>>(p, half + (wrong ? 1 : 0), 1);  // FIRST
  else
    fill<<<4, 256, 0, a>>>(p + half, half, 2);  // SECOND
  barrier();
}

CASE(wait_for_another_stream) {  // rank-race fill
  shared_ints p;
  ints q;
  stream a, b;
  if (rank == 0) {
    fill<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
    CHECK(cudaStreamSynchronize(wrong ? b : a));
  }
  barrier();
  if (rank == 1) CHECK(cudaMemcpy(q, p, bytes, cudaMemcpyDeviceToDevice));  // SECOND
  barrier();
}

CASE(exported_before_the_kernel_has_run) {  // rank-race fill
  int* p = nullptr;
  ints q;
  stream a;
  if (rank == 0) {
    CHECK(cudaMalloc(&p, bytes));
    fill<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
    if (!wrong) CHECK(cudaStreamSynchronize(a));
  }
  p = opened(p);
  if (rank == 1) CHECK(cudaMemcpy(q, p, bytes, cudaMemcpyDeviceToDevice));  // SECOND
  barrier();
  close_and_free(p);
}

CASE(freed_while_the_other_rank_uses_it) {  // rank-race fill
  int* p = nullptr;
  stream a;
  if (rank == 0) CHECK(cudaMalloc(&p, bytes));
  p = opened(p);
  if (rank == 1) {
    fill<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
    if (!wrong) CHECK(cudaStreamSynchronize(a));
  }
  barrier();
  if (rank == 0) CHECK(cudaFree(p));  // SECOND
  barrier();
  if (rank == 1) CHECK(cudaIpcCloseMemHandle(p));
}

// A message that hpe itself copies from device to device ends with the receive.
CASE_WITH(shared_work, kernel_after_a_message_of_the_memory) {  // rank-race fill
  if (rank == 0) {
    MPI_Send(p, count, MPI_INT, 1, 0, MPI_COMM_WORLD);
  } else {
    MPI_Recv(q, count, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    fill<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
    if (!wrong) CHECK(cudaStreamSynchronize(a));
  }
  barrier();
  if (rank == 0) CHECK(cudaMemcpy(q, p, bytes, cudaMemcpyDeviceToDevice));  // SECOND
  barrier();
}

static void receive(void*) {
  int message = 0;
  MPI_Recv(&message, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// The work behind a host function is queued before the message arrives.
CASE(message_to_a_host_function) {  // rank-race fill
  shared_ints p;
  stream a;
  int message = 0;
  if (rank == 0) {
    barrier();
    fill<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
    if (!wrong) CHECK(cudaStreamSynchronize(a));
    MPI_Send(&message, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
  } else {
    CHECK(cudaLaunchHostFunc(a, receive, nullptr));
    fill<<<4, 256, 0, a>>>(p, count, 1);  // SECOND
    barrier();
    CHECK(cudaStreamSynchronize(a));
  }
  barrier();
}

// hpe does not see the order that an event of another process makes, and finds no races from then on.
CASE_ALONE(event_of_the_other_rank) {  // rank-race fill (not found)
  shared_ints p;
  ints q;
  stream a;
  cudaEvent_t e;
  cudaIpcEventHandle_t handle;
  if (rank == 0) {
    CHECK(cudaEventCreateWithFlags(&e, cudaEventInterprocess | cudaEventDisableTiming));
    CHECK(cudaIpcGetEventHandle(&handle, e));
    fill<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
    CHECK(cudaEventRecord(e, a));
  }
  MPI_Bcast(&handle, sizeof handle, MPI_BYTE, 0, MPI_COMM_WORLD);
  if (rank == 1) {
    CHECK(cudaIpcOpenEventHandle(&e, handle));
    if (!wrong) CHECK(cudaStreamWaitEvent(a, e, 0));
    CHECK(cudaMemcpyAsync(q, p, bytes, cudaMemcpyDeviceToDevice, a));  // SECOND
    CHECK(cudaStreamSynchronize(a));
  }
  barrier();
  wait_for_all();
  CHECK(cudaEventDestroy(e));
}

// Nor does it see the order that a flag makes which kernels set and read.
static __global__ void signal(volatile int* flag) { *flag = 1; }
static __global__ void wait_for(volatile int* flag) {
  while (*flag == 0) {
  }
}

CASE_ALONE(flag_of_the_other_rank) {  // rank-race fill (not found)
  shared_ints p, flag;
  ints q;
  stream a;
  if (rank == 0) {
    fill<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
    signal<<<1, 1, 0, a>>>(flag);
  } else {
    if (!wrong) wait_for<<<1, 1, 0, a>>>(flag);
    twice<<<4, 256, 0, a>>>(q, p, count);  // SECOND
    CHECK(cudaStreamSynchronize(a));
  }
  barrier();
}

int main(int argc, char** argv) {
  int level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int status = run_cases(argc, argv, after_each);
  MPI_Finalize();
  return status;
}
