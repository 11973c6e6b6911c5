// Two ranks exchange messages of ordinary memory before rank 0 passes device memory to MPI for the first time. hpe then
// must not send an envelope to a receive that it does not inspect (interpose/mpi/messages/board/receive_inspection.h).
// The argument names the case.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "hpe/hpe.hpp"

namespace {

constexpr int count = 750;  // an envelope fits into so many numbers, and MPI sends them eagerly
constexpr int tag_of_probe = 1000;
const MPI_Comm world = MPI_COMM_WORLD;

int rank = 0;
bool all_right = true;
hpe::array<int>* numbers = nullptr;  // 0, 1, 2, ...
std::string name_of_case;

bool is_case(const char* name) { return name_of_case == name; }

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

enum class receive_by { blocking_call, persistent_request, matched_probe };

void receive_probe(receive_by how, std::vector<int>& into) {
  if (how == receive_by::blocking_call)
    MPI_Recv(into.data(), count, MPI_INT, 0, tag_of_probe, world, MPI_STATUS_IGNORE);
  if (how == receive_by::persistent_request) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Recv_init(into.data(), count, MPI_INT, 0, tag_of_probe, world, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
  }
  if (how == receive_by::matched_probe) {
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Mprobe(0, tag_of_probe, world, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(into.data(), count, MPI_INT, &message, MPI_STATUS_IGNORE);
  }
}

// Rank 0 sends device memory to rank 1. Returns, in both ranks, whether hpe has sent an envelope: such a send does not
// complete before the receive has begun.
bool sends_envelope(receive_by how = receive_by::blocking_call) {
  constexpr std::chrono::milliseconds enough{100};  // MPI completes its own send sooner
  int completed = 0;
  receive into;
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank == 0) {
    MPI_Isend(numbers->data(), count, MPI_INT, 1, tag_of_probe, world, &request);
    const auto end = std::chrono::steady_clock::now() + enough;
    while (completed == 0 && std::chrono::steady_clock::now() < end) MPI_Test(&request, &completed, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(world);
  if (rank == 1) {
    receive_probe(how, into.buffer);
    into.require_numbers("a message of device memory");
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Allreduce(MPI_IN_PLACE, &completed, 1, MPI_INT, MPI_MAX, world);  // also waits for the receive of rank 1
  return completed == 0;
}

void send(int tag, int elements = count) { MPI_Send(numbers->data(), elements, MPI_INT, 1, tag, world); }

// Messages without bytes pass no device memory to MPI, whatever their buffers are.
void nothing_in_progress() {
  if (rank == 0) MPI_Send(nullptr, 0, MPI_INT, 1, 1, world);
  if (rank == 1) MPI_Recv(nullptr, 0, MPI_INT, 0, 1, world, MPI_STATUS_IGNORE);
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
  if (is_case("handler")) MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
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

// The receive has completed before the program frees it.
void completed_and_freed_receive() {
  receive early;
  if (rank == 1) {
    early.begin(1);
    int completed = 0;
    MPI_Send(&completed, 1, MPI_INT, 0, 2, world);
    while (completed == 0) MPI_Request_get_status(early.request, &completed, MPI_STATUS_IGNORE);
    MPI_Request_free(&early.request);
  } else {
    std::vector<int> ordinary(count);
    MPI_Recv(ordinary.data(), 1, MPI_INT, 1, 2, world, MPI_STATUS_IGNORE);
    MPI_Send(ordinary.data(), count, MPI_INT, 1, 1, world);
  }
  MPI_Barrier(world);
  require(!sends_envelope(), "the first message was an envelope");
  require(sends_envelope(), "no envelope after a receive that had completed when it was freed");
}

void cancelled_and_freed_receive() {
  receive early;
  if (rank == 1) {
    early.begin(1);
    MPI_Cancel(&early.request);
    MPI_Request_free(&early.request);
  }
  MPI_Barrier(world);
  require(!sends_envelope(), "the first message was an envelope");
  require(sends_envelope(), "no envelope after a receive that was cancelled and freed");
}

// hpe sends no envelopes on intercommunicators.
void receive_from_other_group() {
  MPI_Comm both = MPI_COMM_NULL;
  MPI_Intercomm_create(MPI_COMM_SELF, 0, world, 1 - rank, 1, &both);
  receive early;
  if (rank == 1) MPI_Irecv(early.buffer.data(), count, MPI_INT, 0, 1, both, &early.request);
  MPI_Barrier(world);
  require(!sends_envelope(), "the first message was an envelope");
  require(sends_envelope(), "no envelope during a receive on an intercommunicator");
  if (rank == 0) MPI_Send(numbers->data(), count, MPI_INT, 0, 1, both);
  MPI_Wait(&early.request, MPI_STATUS_IGNORE);
  if (rank == 1) early.require_numbers("the message on the intercommunicator");
  MPI_Comm_free(&both);
}

// Rank 1 learns that rank 0 has passed device memory to MPI, although it calls neither MPI_Recv nor MPI_Irecv.
void only_persistent_receives() {
  require(!sends_envelope(receive_by::persistent_request), "the first message was an envelope");
  require(sends_envelope(receive_by::persistent_request), "no envelope to a persistent receive");
}

void only_matched_probes() {
  require(!sends_envelope(receive_by::matched_probe), "the first message was an envelope");
  require(sends_envelope(receive_by::matched_probe), "no envelope to a matched probe");
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
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank == 0) {
    std::vector<int> ordinary(count);
    std::iota(ordinary.begin(), ordinary.end(), 0);
    MPI_Send(ordinary.data(), count, MPI_INT, 1, 1, world);
  } else {
    std::memset(numbers->data(), 0, count * sizeof(int));
    if (is_case("device-persistent")) {
      MPI_Recv_init(numbers->data(), count, MPI_INT, 0, 1, world, &request);
      MPI_Start(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      MPI_Request_free(&request);
    } else if (is_case("device-matched")) {
      MPI_Message message = MPI_MESSAGE_NULL;
      MPI_Mprobe(0, 1, world, &message, MPI_STATUS_IGNORE);
      MPI_Mrecv(numbers->data(), count, MPI_INT, &message, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(numbers->data(), count, MPI_INT, 0, 1, world, MPI_STATUS_IGNORE);
    }
    require((*numbers)[count - 1] == count - 1, "the message in device memory");
  }
  MPI_Barrier(world);
  require(sends_envelope(), "no envelope after a receive into device memory");
}

// Rank 1 waits for a message into device memory in a call that also sends, while rank 0 learns from another thread of
// rank 1 whether it may send envelopes.
void exchange_during(void (*exchange)(int* into, MPI_Status* status)) {
  std::vector<int> ordinary(count);
  if (rank == 1) {
    std::fill_n(numbers->data(), count, -1);
    std::atomic<bool> begins = false;
    std::thread other([&] {
      MPI_Status status;
      int received = 0;
      begins = true;
      exchange(numbers->data(), &status);
      MPI_Get_count(&status, MPI_INT, &received);
      require(received == count, "the length of a message in a call that also sends", received);
      for (int i = 0; i < count && all_right; ++i)
        require((*numbers)[i] == i, "the message in a call that also sends", i);
    });
    while (!begins) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the other thread is then in the call
    MPI_Send(ordinary.data(), 1, MPI_INT, 0, 2, world);
    for (int n = 0; n < 2; ++n) MPI_Recv(ordinary.data(), 1, MPI_INT, 0, 3, world, MPI_STATUS_IGNORE);
    MPI_Send(ordinary.data(), 1, MPI_INT, 0, 2, world);
    other.join();
  } else {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Recv(ordinary.data(), 1, MPI_INT, 1, 2, world, MPI_STATUS_IGNORE);
    MPI_Irecv(numbers->data() + 5000, count, MPI_INT, 0, 4, world, &request);
    MPI_Send(ordinary.data(), count, MPI_INT, 0, 4, world);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int n = 0; n < 2; ++n) MPI_Send(ordinary.data(), 1, MPI_INT, 1, 3, world);
    MPI_Recv(ordinary.data(), 1, MPI_INT, 1, 2, world, MPI_STATUS_IGNORE);
    if (is_case("replace")) MPI_Recv(ordinary.data(), count, MPI_INT, 1, 5, world, MPI_STATUS_IGNORE);
    MPI_Ssend(numbers->data(), count, MPI_INT, 1, 1, world);
  }
}

void sendrecv() {
  exchange_during([](int* into, MPI_Status* status) {
    const std::vector<int> ordinary(count);
    MPI_Sendrecv(ordinary.data(), 0, MPI_INT, MPI_PROC_NULL, 5, into, count, MPI_INT, 0, 1, world, status);
  });
}

void sendrecv_replace() {
  exchange_during(
      [](int* into, MPI_Status* status) { MPI_Sendrecv_replace(into, count, MPI_INT, 0, 5, 0, 1, world, status); });
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
    {"handler", small_receive_in_progress},
    {"freed-complete", completed_and_freed_receive},
    {"freed-cancelled", cancelled_and_freed_receive},
    {"intercommunicator", receive_from_other_group},
    {"only-persistent", only_persistent_receives},
    {"only-matched", only_matched_probes},
    {"device-persistent", device_receive},
    {"device-matched", device_receive},
    {"sendrecv", sendrecv},
    {"replace", sendrecv_replace},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2) name_of_case = argv[1];
  int level = MPI_THREAD_SINGLE;
  const bool with_threads = is_case("sendrecv") || is_case("replace");
  MPI_Init_thread(&argc, &argv, with_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
  MPI_Comm_rank(world, &rank);
  hpe::array<int> own(1 << 20);
  std::iota(own.data(), own.data() + own.size(), 0);
  numbers = &own;
  const auto* const chosen =
      std::find_if(std::begin(cases), std::end(cases), [](const auto& each) { return is_case(each.name); });
  require(chosen != std::end(cases), "no such case");
  MPI_Barrier(world);  // MPI has then connected the ranks, and sends short messages at once
  if (chosen != std::end(cases)) chosen->run();
  MPI_Finalize();
  return all_right ? 0 : 1;
}
