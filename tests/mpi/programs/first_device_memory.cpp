// Two ranks exchange messages of ordinary memory before rank 0 passes device memory to MPI for the first time. hpe then
// must not send an envelope to a receive that it does not inspect (interpose/mpi/messages/board/receive_inspection.h).
// The argument names the case.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "hpe/hpe.hpp"

namespace {

constexpr int count = 750;  // an envelope fits into so many numbers, and MPI sends them eagerly
constexpr int tag_of_probe = 1000;
const MPI_Comm world = MPI_COMM_WORLD;

int rank = 0;
bool all_right = true;
hpe::array<int>* numbers = nullptr;  // 0, 1, 2, ...

void require(bool holds, const char* wrong, int number = 0) {
  if (holds) return;
  all_right = false;
  std::printf("wrong on rank %d: %s (%d)\n", rank, wrong, number);
}

// A buffer in ordinary memory, and its receive.
struct receive {
  std::vector<int> buffer = std::vector<int>(count, -1);
  MPI_Request request = MPI_REQUEST_NULL;

  void begin(int tag, int room = count) { MPI_Irecv(buffer.data(), room, MPI_INT, 0, tag, world, &request); }
  void require_numbers(const char* wrong, int received = count) const {
    std::vector<int> expected(received);
    std::iota(expected.begin(), expected.end(), 0);
    require(std::equal(expected.begin(), expected.end(), buffer.begin()), wrong);
  }
};

// Rank 0 sends device memory to rank 1. Returns, in both ranks, whether hpe has sent an envelope: such a send does not
// complete before the receive has begun.
bool sends_envelope() {
  constexpr int tests = 1000;
  int completed = 0;
  receive into;
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank == 0) {
    MPI_Isend(numbers->data(), count, MPI_INT, 1, tag_of_probe, world, &request);
    for (int n = 0; n < tests && completed == 0; ++n) MPI_Test(&request, &completed, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(world);
  if (rank == 1) {
    MPI_Recv(into.buffer.data(), count, MPI_INT, 0, tag_of_probe, world, MPI_STATUS_IGNORE);
    into.require_numbers("a message of device memory");
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Allreduce(MPI_IN_PLACE, &completed, 1, MPI_INT, MPI_MAX, world);  // also waits for the receive of rank 1
  return completed == 0;
}

void send(int tag, int elements = count) { MPI_Send(numbers->data(), elements, MPI_INT, 1, tag, world); }

void nothing_in_progress() {
  require(!sends_envelope(), "the first message was an envelope");
  for (int n = 0; n < 3; ++n) require(sends_envelope(), "a later message was no envelope", n);
}

void receive_in_progress() {
  receive early;
  if (rank == 1) early.begin(1);
  MPI_Barrier(world);
  for (int n = 0; n < 3; ++n) require(!sends_envelope(), "an envelope during an earlier receive", n);
  if (rank == 0) send(1);
  if (rank == 1) {
    MPI_Wait(&early.request, MPI_STATUS_IGNORE);
    early.require_numbers("the message of the earlier receive");
  }
  MPI_Barrier(world);
  require(sends_envelope(), "no envelope after the earlier receive");
}

void small_receive_in_progress() {
  constexpr int few = 10;
  receive early;
  if (rank == 1) early.begin(1, few);
  MPI_Barrier(world);
  require(!sends_envelope(), "the first message was an envelope");
  require(sends_envelope(), "no envelope during an earlier receive that is smaller than an envelope");
  if (rank == 0) send(1, few);
  if (rank == 1) {
    MPI_Wait(&early.request, MPI_STATUS_IGNORE);
    early.require_numbers("the message of the earlier receive", few);
  }
}

// hpe does not learn when the freed receive completes.
void freed_receive() {
  receive early;
  if (rank == 1) {
    early.begin(1);
    MPI_Request_free(&early.request);
  }
  MPI_Barrier(world);
  for (int n = 0; n < 3; ++n) require(!sends_envelope(), "an envelope during a freed receive", n);
  if (rank == 0) send(1);
  MPI_Barrier(world);
  require(!sends_envelope(), "an envelope after a freed receive");
}

// Each function that completes requests ends an early receive.
void each_completion() {
  constexpr int functions = 8;
  std::array<receive, functions> early;
  if (rank == 1)
    for (int f = 0; f < functions; ++f) early[f].begin(f);
  MPI_Barrier(world);
  for (int f = 0; f < functions; ++f) {
    require(!sends_envelope(), "an envelope during an earlier receive", f);
    if (rank == 0) send(f);
    if (rank == 1) {
      std::array<MPI_Request, 2> both{MPI_REQUEST_NULL, early[f].request};
      int index = 0;
      int done = 0;
      std::array<int, 2> indices{};
      while (done <= 0) {
        switch (f) {
          case 0: MPI_Wait(&both[1], MPI_STATUS_IGNORE), done = 1; break;
          case 1: MPI_Test(&both[1], &done, MPI_STATUS_IGNORE); break;
          case 2: MPI_Waitany(2, both.data(), &index, MPI_STATUS_IGNORE), done = 1; break;
          case 3: MPI_Testany(2, both.data(), &index, &done, MPI_STATUS_IGNORE); break;
          case 4: MPI_Waitall(2, both.data(), MPI_STATUSES_IGNORE), done = 1; break;
          case 5: MPI_Testall(2, both.data(), &done, MPI_STATUSES_IGNORE); break;
          case 6: MPI_Waitsome(2, both.data(), &done, indices.data(), MPI_STATUSES_IGNORE); break;
          default: MPI_Testsome(2, both.data(), &done, indices.data(), MPI_STATUSES_IGNORE);
        }
      }
      early[f].require_numbers("the message of an earlier receive");
    }
    MPI_Barrier(world);
  }
  require(sends_envelope(), "no envelope after the earlier receives");
}

void cancelled_receive() {
  receive early;
  if (rank == 1) early.begin(1);
  MPI_Barrier(world);
  require(!sends_envelope(), "an envelope during an earlier receive");
  if (rank == 1) {
    MPI_Cancel(&early.request);
    MPI_Wait(&early.request, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(world);
  require(sends_envelope(), "no envelope after a cancelled receive");
}

// So many requests that hpe's table of requests grows, completed in another order.
void many_receives() {
  constexpr int many = 500;
  std::vector<receive> early(many);
  std::vector<MPI_Request> requests;
  if (rank == 1)
    for (int n = 0; n < many; ++n) {
      early[n].begin(n);
      requests.push_back(early[n].request);
    }
  MPI_Barrier(world);
  require(!sends_envelope(), "an envelope during earlier receives");
  if (rank == 0)
    for (int n = 0; n < many; ++n) send(n);
  if (rank == 1) {
    std::rotate(requests.begin(), requests.begin() + many / 3, requests.end());
    for (int n = 0; n < many / 2; ++n) MPI_Wait(&requests[2 * n], MPI_STATUS_IGNORE);
    MPI_Waitall(many, requests.data(), MPI_STATUSES_IGNORE);
    for (const receive& each : early) each.require_numbers("the message of an earlier receive");
  }
  MPI_Barrier(world);
  require(sends_envelope(), "no envelope after the earlier receives");
}

// The program creates a persistent send before hpe may send envelopes.
void persistent_send() {
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank == 0) MPI_Ssend_init(numbers->data(), count, MPI_INT, 1, 1, world, &request);
  for (int n = 0; n < 4; ++n) {
    receive into;
    if (rank == 1) into.begin(1);
    if (rank == 0) MPI_Start(&request);
    if (rank == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Wait(&into.request, MPI_STATUS_IGNORE);
    if (rank == 1) into.require_numbers("a persistent message");
    MPI_Barrier(world);
  }
  if (rank == 0) MPI_Request_free(&request);
  require(sends_envelope(), "no envelope after the persistent messages");
}

// A receive into device memory makes the ranks inspect their receives, too.
void device_receive() {
  if (rank == 0) {
    std::vector<int> ordinary(count);
    std::iota(ordinary.begin(), ordinary.end(), 0);
    MPI_Send(ordinary.data(), count, MPI_INT, 1, 1, world);
  } else {
    std::memset(numbers->data(), 0, count * sizeof(int));
    MPI_Recv(numbers->data(), count, MPI_INT, 0, 1, world, MPI_STATUS_IGNORE);
    require((*numbers)[count - 1] == count - 1, "the message in device memory");
  }
  MPI_Barrier(world);
  require(sends_envelope(), "no envelope after a receive into device memory");
}

void probes() {
  receive into;
  for (int n = 0; n < 4; ++n) {
    MPI_Status status;
    int elements = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 0) MPI_Isend(numbers->data(), count, MPI_INT, 1, 1, world, &request);
    if (rank == 1) {
      MPI_Message message = MPI_MESSAGE_NULL;
      n % 2 == 0 ? MPI_Probe(0, 1, world, &status) : MPI_Mprobe(0, 1, world, &message, &status);
      MPI_Get_count(&status, MPI_INT, &elements);
      require(elements == count, "the length that a probe has found", elements);
      n % 2 == 0 ? MPI_Recv(into.buffer.data(), count, MPI_INT, 0, 1, world, MPI_STATUS_IGNORE)
                 : MPI_Mrecv(into.buffer.data(), count, MPI_INT, &message, MPI_STATUS_IGNORE);
      into.require_numbers("a message that a probe has found");
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(world);
  }
  require(sends_envelope(), "no envelope after the probes");
}

const struct {
  const char* name;
  void (*run)();
} cases[] = {
    {"nothing", nothing_in_progress},
    {"receive", receive_in_progress},
    {"small", small_receive_in_progress},
    {"freed", freed_receive},
    {"completions", each_completion},
    {"cancelled", cancelled_receive},
    {"many", many_receives},
    {"persistent", persistent_send},
    {"device", device_receive},
    {"probes", probes},
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(world, &rank);
  hpe::array<int> own(1 << 20);
  std::iota(own.data(), own.data() + own.size(), 0);
  numbers = &own;
  const auto* const chosen = std::find_if(std::begin(cases), std::end(cases), [&](const auto& each) {
    return argc == 2 && each.name == std::string(argv[1]);
  });
  require(chosen != std::end(cases), "no such case");
  MPI_Barrier(world);  // MPI has then connected the ranks, and sends short messages at once
  if (chosen != std::end(cases)) chosen->run();
  MPI_Finalize();
  return all_right ? 0 : 1;
}
