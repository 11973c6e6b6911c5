// Tests messages between ranks from device memory that CUDA allocated. hpe copies these messages from device to device,
// or with HPE_MPI_DIRECT=0 through host memory. Messages must not wait for work for which the program has already
// waited, and must use the right memory after the program has freed memory and allocated other memory at the same
// address.
#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/mpi/adopted/adopted.h"

using namespace adopted;  // NOLINT(google-build-using-namespace): this file is part of that namespace

namespace {

void both_directions(std::size_t count) {
  const bytes mine = random_bytes(count, seed_of(rank, count));
  const bytes theirs = random_bytes(count, seed_of(other(), count));
  const device_bytes out(mine);
  const device_bytes in(random_bytes(count, 3));
  const int n = static_cast<int>(count);
  MPI_Request requests[2];
  MPI_Status status;
  MPI_Irecv(in.data(), n, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, world, &requests[0]);
  MPI_Isend(out.data(), n, MPI_BYTE, other(), tag, world, &requests[1]);
  MPI_Wait(&requests[0], &status);
  MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  int got = 0;
  MPI_Get_count(&status, MPI_BYTE, &got);
  EXPECT(got == n && status.MPI_SOURCE == other() && status.MPI_TAG == tag);
  EXPECT(in.get() == theirs);
  EXPECT(out.get() == mine);

  // First one of the two buffers is in ordinary memory. Then each rank sends a message to itself.
  bytes host(count, 7);
  MPI_Sendrecv(out.data(), n, MPI_BYTE, other(), tag, host.data(), n, MPI_BYTE, other(), tag, world, &status);
  EXPECT(host == theirs);
  host = mine;
  in.put(bytes(count, 9));
  MPI_Sendrecv(host.data(), n, MPI_BYTE, other(), tag, in.data(), n, MPI_BYTE, other(), tag, world, &status);
  EXPECT(in.get() == theirs);
  MPI_Sendrecv(out.data(), n, MPI_BYTE, rank, tag, in.data(), n, MPI_BYTE, rank, tag, world, &status);
  EXPECT(in.get() == mine);

  // Persistent requests, which are started twice with different data.
  MPI_Send_init(out.data(), n, MPI_BYTE, other(), tag, world, &requests[0]);
  MPI_Recv_init(in.data(), n, MPI_BYTE, other(), tag, world, &requests[1]);
  for (unsigned round = 1; round < 3; ++round) {
    out.put(random_bytes(count, seed_of(rank, count) + round * 100));
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    EXPECT(in.get() == random_bytes(count, seed_of(other(), count) + round * 100));
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

void probes(std::size_t count) {
  const bytes theirs = random_bytes(count, seed_of(0, count));
  const int n = static_cast<int>(count);
  if (rank == 0) {
    const device_bytes out(theirs);
    MPI_Send(out.data(), n, MPI_BYTE, 1, tag, world);
    MPI_Send(out.data(), n, MPI_BYTE, 1, tag, world);
    return;
  }
  const device_bytes in(count);
  MPI_Status status;
  int got = 0;
  MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, world, &status);
  MPI_Get_count(&status, MPI_BYTE, &got);
  EXPECT(got == n);
  MPI_Recv(in.data(), n, MPI_BYTE, 0, tag, world, MPI_STATUS_IGNORE);
  EXPECT(in.get() == theirs);
  MPI_Message message;
  MPI_Mprobe(0, tag, world, &message, &status);
  in.put(bytes(count, 1));
  MPI_Mrecv(in.data(), n, MPI_BYTE, &message, MPI_STATUS_IGNORE);
  EXPECT(in.get() == theirs);
}

// A receive whose buffer is too small must return an error and must not change the buffer. The sender's call must
// return, too.
void truncation(std::size_t count) {
  const int n = static_cast<int>(count);
  if (rank == 0) {
    const device_bytes out(random_bytes(count, 1));
    MPI_Send(out.data(), n, MPI_BYTE, 1, tag, world);
    return;
  }
  const bytes before = random_bytes(count, 2);
  const device_bytes in(before);
  const int result = MPI_Recv(in.data(), n - 1, MPI_BYTE, 0, tag, world, MPI_STATUS_IGNORE);
  int kind = MPI_SUCCESS;
  MPI_Error_class(result, &kind);
  EXPECT(kind == MPI_ERR_TRUNCATE);
  EXPECT(in.get() == before);
}

// A blocking send that MPI itself would send eagerly must return without waiting for the receiver. The program may then
// change the bytes.
void sent_before_it_is_received() {
  for (const std::size_t count : {std::size_t{8}, std::size_t{4000}}) {
    const int n = static_cast<int>(count);
    const device_bytes out(random_bytes(count, seed_of(rank, count)));
    const device_bytes in(bytes(count, 0));
    MPI_Send(out.data(), n, MPI_BYTE, other(), tag, world);
    MPI_Barrier(world);
    out.put(bytes(count, 0xee));
    MPI_Recv(in.data(), n, MPI_BYTE, other(), tag, world, MPI_STATUS_IGNORE);
    EXPECT(in.get() == random_bytes(count, seed_of(other(), count)));
  }
}

// hpe copies the bytes of a send that no rank has received yet to the host. If this copy fails, the send fails. A later
// start of the same persistent send must not return the old error.
void fails_once() {
  constexpr int count = 1000;
  const bytes sent = random_bytes(count, seed_of(0, count));
  const device_bytes memory(sent);
  MPI_Barrier(world);
  if (rank == 0) {
    MPI_Request send;
    MPI_Send_init(memory.data(), count, MPI_BYTE, 1, tag, world, &send);
    of_stand_in<stand_in::fail_function>("stand_in_fail")("cuMemcpyAsync", 0, CUDA_ERROR_UNKNOWN);
    MPI_Start(&send);
    EXPECT(MPI_Wait(&send, MPI_STATUS_IGNORE) != MPI_SUCCESS);
    MPI_Barrier(world);
    MPI_Start(&send);
    EXPECT(MPI_Wait(&send, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    MPI_Request_free(&send);
  } else {
    MPI_Barrier(world);
    MPI_Recv(memory.data(), count, MPI_BYTE, 0, tag, world, MPI_STATUS_IGNORE);
    memory.put(bytes(count, 1));
    MPI_Recv(memory.data(), count, MPI_BYTE, 0, tag, world, MPI_STATUS_IGNORE);
    EXPECT(memory.get() == sent);
  }
}

// A synchronous send must return only after its receive has begun. So when it returns, a message that the receiver has
// sent before the receive must have arrived.
void synchronous() {
  const device_bytes memory(random_bytes(8, seed_of(0, 8)));
  int token = 0;
  if (rank == 0) {
    int there = 0;
    MPI_Ssend(memory.data(), 8, MPI_BYTE, 1, tag, world);
    // Probes repeatedly, because the first probe of Open MPI may not find a message that has arrived.
    for (int i = 0; i < 100 && there == 0; ++i) MPI_Iprobe(1, tag + 1, world, &there, MPI_STATUS_IGNORE);
    EXPECT(there != 0);
    MPI_Recv(&token, 1, MPI_INT, 1, tag + 1, world, MPI_STATUS_IGNORE);
  } else {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    MPI_Send(&token, 1, MPI_INT, 0, tag + 1, world);
    MPI_Recv(memory.data(), 8, MPI_BYTE, 0, tag, world, MPI_STATUS_IGNORE);
  }
}

// The program frees memory and allocates other memory at the same address, while the other rank has the old memory
// mapped.
void freed_and_allocated_again() {
  constexpr std::size_t count = std::size_t{6} << 20;
  CUdeviceptr address = 0;
  const device_bytes in(count);
  bool same = false;
  for (unsigned round = 0; round < 4; ++round) {
    const bytes mine = random_bytes(count, seed_of(rank, count) + 10 * round);
    const device_bytes out(mine);
    same = same || out.address() == address;
    address = out.address();
    MPI_Sendrecv(out.data(), count, MPI_BYTE, other(), tag, in.data(), count, MPI_BYTE, other(), tag, world,
                 MPI_STATUS_IGNORE);
    EXPECT(in.get() == random_bytes(count, seed_of(other(), count) + 10 * round));
  }
  EXPECT(same);
}

const stand_in::kernel fill{[](const std::uint64_t* parameters) {
                              auto* const p = static_cast<std::uint8_t*>(
                                  of_stand_in<stand_in::memory_function>("stand_in_memory")(parameters[0]));
                              for (std::uint64_t i = 0; i < parameters[1]; ++i)
                                p[i] = static_cast<std::uint8_t>(parameters[2]);
                            },
                            3};

void launch(const device_bytes& where, std::uint64_t count, std::uint64_t value, CUstream stream) {
  CUdeviceptr address = where.address();
  void* parameters[] = {&address, &count, &value};
  auto* const function = reinterpret_cast<CUfunction>(const_cast<stand_in::kernel*>(&fill));
  EXPECT(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr) == CUDA_SUCCESS);
}

// Messages must wait for queued work on all streams, except for work for which the program itself has waited.
void waits() {
  constexpr std::size_t count = 100000;
  CUstream streams[2];
  for (CUstream& s : streams) EXPECT(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  const device_bytes out(count);
  const device_bytes in(count);
  const auto exchange = [&](std::uint8_t value) {
    MPI_Sendrecv(out.data(), count, MPI_BYTE, other(), tag, in.data(), count, MPI_BYTE, other(), tag, world,
                 MPI_STATUS_IGNORE);
    EXPECT(in.get() == bytes(count, value));
  };
  for (unsigned round = 0; round < 8; ++round) {
    for (unsigned i = 0; i < 10; ++i) launch(out, count, i, streams[round % 2]);
    launch(out, count, 50 + round, streams[round % 2]);
    exchange(static_cast<std::uint8_t>(50 + round));
  }
  for (unsigned round = 0; round < 4; ++round) {
    launch(out, count, 100 + round, streams[0]);
    EXPECT((round % 2 == 0 ? cuStreamSynchronize(streams[0]) : cuCtxSynchronize()) == CUDA_SUCCESS);
    const unsigned before = calls_of("cuCtxSynchronize");
    MPI_Sendrecv(out.data(), count, MPI_BYTE, other(), tag, in.data(), count, MPI_BYTE, other(), tag, world,
                 MPI_STATUS_IGNORE);
    EXPECT(calls_of("cuCtxSynchronize") == before);
    EXPECT(in.get() == bytes(count, static_cast<std::uint8_t>(100 + round)));
  }
  // A persistent send must wait for queued work at each start.
  MPI_Request send;
  MPI_Send_init(out.data(), count, MPI_BYTE, other(), tag, world, &send);
  for (unsigned round = 0; round < 3; ++round) {
    for (unsigned i = 0; i < 10; ++i) launch(out, count, 150 + round, streams[0]);
    MPI_Start(&send);
    MPI_Recv(in.data(), count, MPI_BYTE, other(), tag, world, MPI_STATUS_IGNORE);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    EXPECT(in.get() == bytes(count, static_cast<std::uint8_t>(150 + round)));
  }
  MPI_Request_free(&send);
  // The program waits for one stream only, so the message must wait for the other stream.
  const device_bytes beside(count);
  launch(beside, count, 1, streams[0]);
  for (unsigned i = 0; i < 10; ++i) launch(out, count, 200, streams[1]);
  EXPECT(cuStreamSynchronize(streams[0]) == CUDA_SUCCESS);
  exchange(200);
  for (const CUstream s : streams) EXPECT(cuStreamDestroy(s) == CUDA_SUCCESS);
}

unsigned copies() {
  unsigned all = 0;
  for (const char* entry :
       {"cuMemcpyAsync", "cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoH_v2", "cuMemcpyHtoD_v2"})
    all += calls_of(entry);
  return all;
}

// Messages to and from MPI_PROC_NULL must copy nothing. The ranks form a chain: each rank sends to one side and
// receives from the other side in one call, and a rank at an end of the chain has MPI_PROC_NULL on one side.
void no_neighbour() {
  constexpr int count = 32768;
  const bytes theirs = random_bytes(count, seed_of(other(), count));
  const device_bytes out(random_bytes(count, seed_of(rank, count)));
  const device_bytes in(random_bytes(count, 3));
  const unsigned before = copies();
  MPI_Request requests[2];
  MPI_Status status;
  MPI_Send(out.data(), count, MPI_BYTE, MPI_PROC_NULL, tag, world);
  MPI_Recv(in.data(), count, MPI_BYTE, MPI_PROC_NULL, tag, world, &status);
  MPI_Isend(out.data(), count, MPI_BYTE, MPI_PROC_NULL, tag, world, &requests[0]);
  MPI_Irecv(in.data(), count, MPI_BYTE, MPI_PROC_NULL, tag, world, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Sendrecv(out.data(), count, MPI_BYTE, MPI_PROC_NULL, tag, in.data(), count, MPI_BYTE, MPI_PROC_NULL, tag, world,
               &status);
  MPI_Sendrecv_replace(in.data(), count, MPI_BYTE, MPI_PROC_NULL, tag, MPI_PROC_NULL, tag, world, &status);
  EXPECT(status.MPI_SOURCE == MPI_PROC_NULL);
  EXPECT(copies() == before);
  for (const bool up : {true, false}) {
    const bool sends = (rank == 1) == up;
    const unsigned at_first = copies();
    MPI_Sendrecv(out.data(), count, MPI_BYTE, sends ? other() : MPI_PROC_NULL, tag, in.data(), count, MPI_BYTE,
                 sends ? MPI_PROC_NULL : other(), tag, world, &status);
    unsigned all = copies() - at_first;
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_UNSIGNED, MPI_SUM, world);
    if (direct()) EXPECT(all == 1);
    EXPECT(status.MPI_SOURCE == (sends ? MPI_PROC_NULL : other()));
    if (!sends) EXPECT(in.get() == theirs);
  }
  in.put(random_bytes(count, 3));
  MPI_Sendrecv_replace(rank == 0 ? in.data() : out.data(), count, MPI_BYTE, rank == 0 ? MPI_PROC_NULL : 0, tag,
                       rank == 0 ? 1 : MPI_PROC_NULL, tag, world, &status);
  if (rank == 0) EXPECT(in.get() == theirs);
}

// CPU code of the rank accesses the memory before and after each message.
void touched() {
  constexpr std::size_t count = std::size_t{3} << 20;
  bytes mine = random_bytes(count, seed_of(rank, 9));
  bytes theirs = random_bytes(count, seed_of(other(), 9));
  const device_bytes out(mine);
  const device_bytes in(count);
  for (unsigned round = 0; round < 3; ++round) {
    out.data()[round * 1000] = static_cast<std::uint8_t>(round);
    theirs[round * 1000] = static_cast<std::uint8_t>(round);
    in.data()[count - 1] = 77;
    MPI_Sendrecv(out.data(), count, MPI_BYTE, other(), tag, in.data(), count, MPI_BYTE, other(), tag, world,
                 MPI_STATUS_IGNORE);
    EXPECT(in.data()[round * 1000] == round && in.data()[count - 1] == theirs[count - 1]);
    EXPECT(in.get() == theirs);
  }
}

// CPU code of the receiver accesses the page while the sender copies to it.
void touched_meanwhile() {
  constexpr std::size_t count = 1000;
  constexpr std::size_t neighbour = 2000;
  const auto pause = of_stand_in<stand_in::pause_function>("stand_in_pause");
  for (unsigned round = 0; round < 4; ++round) {
    const bytes sent = random_bytes(count, seed_of(0, 6) + round);
    const device_bytes memory(random_bytes(std::size_t{1} << 14, round));
    if (rank == 0) {
      memory.put(sent);
      MPI_Barrier(world);
      pause(1);
      std::thread later([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(60));
        pause(0);
      });
      MPI_Ssend(memory.data(), count, MPI_BYTE, 1, tag, world);
      later.join();
    } else {
      volatile std::uint8_t* const page = memory.data();
      if (round % 2 == 1) page[neighbour] = page[neighbour];  // CPU code accesses the page before the copy, too
      MPI_Barrier(world);
      MPI_Request request;
      int over = 0;
      MPI_Irecv(memory.data(), count, MPI_BYTE, 0, tag, world, &request);
      const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
      while (over == 0 && std::chrono::steady_clock::now() < until) MPI_Test(&request, &over, MPI_STATUS_IGNORE);
      (void)page[neighbour];
      if (over == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
      EXPECT(bytes(memory.data(), memory.data() + count) == sent);
    }
  }
}

// Messages from memory of a pool. Other processes cannot map this memory, so hpe copies the bytes through its own
// device memory.
void of_pools() {
  device_bytes::of_pool = true;
  for (const std::size_t count : {8, 2031, 64 << 10, 1 << 20}) both_directions(count);
  probes(100000);
  truncation(100000);
  messages_of_all_types();
  waits();
  touched();
  device_bytes::of_pool = false;
}

void tests() {
  MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  freed_and_allocated_again();
  // The sizes include those of envelopes (interpose/mpi/messages/envelope.h), 240 and 2032 bytes.
  for (const std::size_t count : {0, 1, 8, 239, 240, 241, 2031, 2032, 64 << 10, 1 << 20}) both_directions(count);
  both_directions(std::size_t{70} << 20);
  for (const std::size_t count : {8, 240, 2032, 100000}) probes(count);
  for (const std::size_t count : {8, 240, 241, 2032, 2100, 100000}) truncation(count);
  sent_before_it_is_received();
  if (direct()) fails_once();
  synchronous();
  advertised_receives();
  if (direct()) unfilled_receives();
  no_neighbour();
  messages_of_all_types();
  // Each rank must have loaded the kernels that copy rows exactly once. If the ranks share a device, rank 0 may have
  // made all these copies, so that rank 1 has loaded no kernels.
  const unsigned loaded = calls_of("cuModuleLoadData");
  EXPECT(loaded == 1U || (one_device() && rank == 1 && loaded == 0));
  waits();
  messages_wait_for_users();
  touched();
  touched_meanwhile();
  collective_calls();
  of_pools();
  EXPECT((calls_of("cuIpcOpenMemHandle_v2") != 0) == direct());
  sides_that_copy();
}

}  // namespace

int main(int argc, char** argv) { return run(argc, argv, "adopted messages", device, tests); }
