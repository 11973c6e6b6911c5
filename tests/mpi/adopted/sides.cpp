// Tests which rank, the sender or the receiver, copies a message from device to device.
#include <array>
#include <chrono>
#include <thread>

#include "tests/mpi/adopted/adopted.h"

namespace adopted {

namespace {

unsigned copies() { return calls_of("cuMemcpyAsync"); }

// The sender must copy if it waits in MPI; otherwise the receiver must copy. If both ranks share a device, rank 0 must
// copy if the sender waits in MPI.
void sides() {
  constexpr std::size_t count = 10000;
  const device_bytes out(random_bytes(count, seed_of(rank, count)));
  const device_bytes in(count);
  const bytes theirs = random_bytes(count, seed_of(other(), count));
  for (int round = 0; round < 8; ++round) {
    const int sender = round / 4;
    const bool sends = rank == sender;
    if (!sends) in.put(bytes(count, 1));
    MPI_Barrier(world);
    const unsigned before = copies();
    MPI_Request request;
    int over = 0;
    if (!sends) {
      MPI_Recv(in.data(), count, MPI_BYTE, sender, tag, world, MPI_STATUS_IGNORE);
    } else if (round % 2 == 0) {
      MPI_Send(out.data(), count, MPI_BYTE, 1 - sender, tag, world);
    } else {
      MPI_Isend(out.data(), count, MPI_BYTE, 1 - sender, tag, world, &request);
      while (over == 0) MPI_Test(&request, &over, MPI_STATUS_IGNORE);
    }
    const bool copied = copies() != before;
    const bool by_sender = round % 2 == 0 && (!one_device() || sender == 0);
    if (direct()) EXPECT(copied == (sends == by_sender));
    if (!sends) EXPECT(in.get() == theirs);
  }
}

// If the sender cannot access the receiver's memory, the receiver must copy. If neither rank can access the other's
// memory, hpe must send the message in chunks.
void out_of_reach() {
  constexpr std::size_t count = 10000;
  const auto refuse = of_stand_in<stand_in::refuse_function>("stand_in_refuse_peers");
  for (int round = 0; round < 2; ++round) {
    const device_bytes out(random_bytes(count, seed_of(rank, count)));
    const device_bytes in(count);
    refuse(rank == 0 || round == 1 ? 1 : 0);
    if (rank == 0) MPI_Send(out.data(), count, MPI_BYTE, 1, tag, world);
    if (rank == 1) {
      MPI_Recv(in.data(), count, MPI_BYTE, 0, tag, world, MPI_STATUS_IGNORE);
      EXPECT(in.get() == random_bytes(count, seed_of(0, count)));
    }
    MPI_Barrier(world);
    refuse(0);
  }
}

// If several messages are in progress, the receiver asks the sender to copy even if the sender may be outside MPI. If
// the sender does not begin the copy, the receiver must copy.
void several_at_once() {
  constexpr std::size_t count = 10000;
  constexpr int messages = 8;
  const device_bytes out(random_bytes(count * messages, seed_of(rank, count)));
  const device_bytes in(count * messages);
  std::array<MPI_Request, messages> requests{};
  unsigned by_sender = 0;
  unsigned by_receiver = 0;
  for (int round = 0; round < 20; ++round) {
    const bool leaves_mpi = round % 2 == 0;
    in.put(bytes(count * messages, 1));
    MPI_Barrier(world);
    const unsigned before = copies();
    for (int m = 0; m < messages; ++m) {
      if (rank == 0)
        MPI_Isend(out.data() + m * count, count, MPI_BYTE, 1, tag, world, &requests[std::size_t(m)]);
      else
        MPI_Irecv(in.data() + m * count, count, MPI_BYTE, 0, tag, world, &requests[std::size_t(m)]);
    }
    if (rank == 0 && leaves_mpi) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    for (int over = 0; over == 0;) MPI_Testall(messages, requests.data(), &over, MPI_STATUSES_IGNORE);
    (rank == 0 ? by_sender : by_receiver) += copies() - before;
    if (rank == 1) EXPECT(in.get() == random_bytes(count * messages, seed_of(0, count)));
  }
  if (!direct()) return;
  if (rank == 0) EXPECT(by_sender != 0);
  if (rank == 1 && !one_device()) EXPECT(by_receiver != 0);
}

}  // namespace

void sides_that_copy() {
  sides();
  several_at_once();
  out_of_reach();
}

}  // namespace adopted
