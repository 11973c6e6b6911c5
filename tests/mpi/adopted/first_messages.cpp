// The first messages of device memory that CUDA allocated. MPI sends the very first one as a whole
// (interpose/mpi/messages/board/receive_inspection.h); hpe must copy later ones from device to device. With the
// argument `threads`, several threads may call MPI.
#include <chrono>
#include <cstring>
#include <thread>

#include "tests/mpi/adopted/adopted.h"

namespace adopted {

namespace {

// A small persistent send that the program has created before its receiver accepted envelopes of small messages.
void small_persistent_send() {
  constexpr int small = 100;
  const bytes content = random_bytes(small, seed_of(0, small));
  const device_bytes memory(rank == 0 ? content : bytes(small, 0));
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank == 0) MPI_Send_init(memory.data(), small, MPI_BYTE, 1, tag, world, &request);
  for (int start = 0; start < 5; ++start) {
    if (rank == 0) {
      MPI_Start(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(memory.data(), small, MPI_BYTE, 0, tag, world, MPI_STATUS_IGNORE);
      EXPECT(memory.get() == content);
      memory.put(bytes(small, 0));
    }
    MPI_Barrier(world);
  }
  if (rank == 0) MPI_Request_free(&request);
  int copies = static_cast<int>(calls_of("cuIpcOpenMemHandle_v2"));
  MPI_Allreduce(MPI_IN_PLACE, &copies, 1, MPI_INT, MPI_SUM, world);
  EXPECT(copies != 0);
}

// After some messages, the sender must copy the next one at once to the buffer of a receive that has begun, although
// the receiver is not in MPI.
void copied_unasked() {
  constexpr int count = 5000;
  const bytes content = random_bytes(count, seed_of(0, count));
  const device_bytes memory(rank == 0 ? content : bytes(count, 0));
  for (int message = 0; message < 3; ++message) {
    if (rank == 0) MPI_Send(memory.data(), count, MPI_BYTE, 1, tag, world);
    if (rank == 1) MPI_Recv(memory.data(), count, MPI_BYTE, 0, tag, world, MPI_STATUS_IGNORE);
    MPI_Barrier(world);
  }
  memory.put(rank == 0 ? content : bytes(count, 0));
  EXPECT(cuCtxSynchronize() == CUDA_SUCCESS);
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank == 1) MPI_Irecv(memory.data(), count, MPI_BYTE, 0, tag, world, &request);
  MPI_Barrier(world);
  if (rank == 0) MPI_Send(memory.data(), count, MPI_BYTE, 1, tag, world);
  if (rank == 1) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    const auto has_arrived = [&] {
      const void* const there = of_stand_in<stand_in::memory_function>("stand_in_memory")(memory.address());
      return std::memcmp(there, content.data(), content.size()) == 0;
    };
    while (!has_arrived() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    EXPECT(has_arrived());
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT(memory.get() == content);
  }
  MPI_Barrier(world);
}

void tests() {
  small_persistent_send();
  copied_unasked();
}

}  // namespace

}  // namespace adopted

int main(int argc, char** argv) {
  const bool with_threads = argc == 2 && std::strcmp(argv[1], "threads") == 0;
  return adopted::run(argc, argv, "first messages", adopted::device, adopted::tests,
                      with_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
}
