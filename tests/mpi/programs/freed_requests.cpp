// Two ranks exchange messages of hpe memory whose request, or communicator, the program frees or cancels before the
// messages have arrived. The argument names the case. Rank 0 sends late.
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "hpe/hpe.hpp"

namespace {

constexpr int count = 1 << 20;
constexpr unsigned late_us = 300'000;
const MPI_Comm world = MPI_COMM_WORLD;

int rank = 0;
bool all_right = true;
hpe::array<int>* numbers = nullptr;  // rank 0: the message; rank 1: zeros

void require(bool holds, const char* wrong, int number = 0) {
  if (holds) return;
  all_right = false;
  std::printf("wrong on rank %d: %s (%d)\n", rank, wrong, number);
}

void send_late(MPI_Comm comm) {
  ::usleep(late_us);
  MPI_Send(numbers->data(), count, MPI_INT, 1, 0, comm);
}

void begin_receive_and_free(MPI_Comm comm) {
  MPI_Request request;
  MPI_Irecv(numbers->data(), count, MPI_INT, 0, 0, comm, &request);
  MPI_Request_free(&request);
}

// Rank 1 knows that earlier messages have arrived when it has received this one.
void pass_token() {
  int token = 5;
  if (rank == 0) MPI_Send(&token, 1, MPI_INT, 1, 99, world);
  if (rank == 1) MPI_Recv(&token, 1, MPI_INT, 0, 99, world, MPI_STATUS_IGNORE);
}

MPI_Comm copy_of_world() {
  MPI_Comm made;
  MPI_Comm_dup(world, &made);
  return made;
}

// A copy of MPI_COMM_WORLD that counts in `deleted` when MPI frees it.
int deleted = 0;
int count_deleted(MPI_Comm, int, void*, void*) {
  ++deleted;
  return MPI_SUCCESS;
}
MPI_Comm counted_copy_of_world() {
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, count_deleted, &key, nullptr);
  MPI_Comm const made = copy_of_world();
  MPI_Comm_set_attr(made, key, nullptr);
  MPI_Comm_free_keyval(&key);
  return made;
}

void receive_until_finalize() { rank == 0 ? send_late(world) : begin_receive_and_free(world); }

void receive_until_disconnect() {
  MPI_Comm comm = copy_of_world();
  rank == 0 ? send_late(comm) : begin_receive_and_free(comm);
  MPI_Comm_disconnect(&comm);
}

void receive_on_a_freed_communicator() {
  MPI_Comm comm = copy_of_world();
  if (rank == 1) begin_receive_and_free(comm);
  if (rank == 0) send_late(comm);
  MPI_Comm_free(&comm);
  pass_token();
}

void persistent_receive() {
  MPI_Request request;
  if (rank == 0) {
    send_late(world);
  } else {
    MPI_Recv_init(numbers->data(), count, MPI_INT, 0, 0, world, &request);
    MPI_Start(&request);
    MPI_Request_free(&request);
  }
  pass_token();
}

void receives_before_later_messages() {
  for (int round = 0; round < 100; ++round) {
    if (rank == 0) MPI_Send(numbers->data(), count, MPI_INT, 1, 0, world);
    if (rank == 1) {
      std::memset(numbers->data(), 0, count * sizeof(int));
      begin_receive_and_free(world);
      if (round % 2 == 1) ::usleep(3000);  // the later message may have arrived before its receive begins
    }
    pass_token();
    require(rank == 0 || (*numbers)[count - 1] == count - 1, "a message in round", round);
  }
}

void cancelled_receive() {
  if (rank == 1) {
    MPI_Request request;
    MPI_Irecv(numbers->data(), count, MPI_INT, 0, 0, world, &request);
    MPI_Cancel(&request);
    MPI_Request_free(&request);
    MPI_Recv(numbers->data(), count, MPI_INT, 0, 0, world, MPI_STATUS_IGNORE);
  } else {
    send_late(world);
  }
}

void receive_of_nothing() {
  static hpe::array<int> unused(count);
  MPI_Request request;
  MPI_Irecv(unused.data(), count, MPI_INT, 0, 77, world, &request);
  MPI_Request_free(&request);
  if (rank == 0) send_late(world);
  if (rank == 1) MPI_Recv(numbers->data(), count, MPI_INT, 0, 0, world, MPI_STATUS_IGNORE);
}

void sends_on_a_freed_communicator() {
  MPI_Comm comm = copy_of_world();
  MPI_Request request;
  if (rank == 0) {
    MPI_Isend(numbers->data(), count, MPI_INT, 1, 0, comm, &request);
    MPI_Request_free(&request);
  } else {
    ::usleep(late_us);
    MPI_Recv(numbers->data(), count, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE);
  }
  MPI_Comm_free(&comm);
}

// The requests are started after the communicator was freed. Another communicator, with the ranks in the other order,
// may get its memory or its handle.
void starts_on_a_freed_communicator() {
  MPI_Comm comm = counted_copy_of_world();
  MPI_Request request;
  if (rank == 0) MPI_Send_init(numbers->data(), count, MPI_INT, 1, 0, comm, &request);
  if (rank == 1) MPI_Recv_init(numbers->data(), count, MPI_INT, 0, 0, comm, &request);
  MPI_Comm_free(&comm);
  require(comm == MPI_COMM_NULL, "the handle of a freed communicator");
  MPI_Comm later;
  MPI_Comm_split(world, 0, -rank, &later);
  for (int round = 0; round < 3; ++round) {
    if (rank == 1) std::memset(numbers->data(), 0, count * sizeof(int));
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    require((*numbers)[count - 1] == count - 1, "a message in round", round);
  }
  MPI_Comm_free(&later);
  MPI_Request_free(&request);
  MPI_Barrier(world);
  require(deleted == 1, "the number of communicators that MPI has freed", deleted);
}

// The program never frees the persistent requests.
void requests_left_to_finalize() {
  MPI_Comm comm = counted_copy_of_world();
  MPI_Request request;
  MPI_Recv_init(numbers->data(), count, MPI_INT, 1 - rank, 0, comm, &request);
  if (rank == 0) send_late(comm);
  MPI_Comm_free(&comm);
  if (rank == 1) {
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

void collective_call_on_a_freed_communicator() {
  MPI_Comm comm = counted_copy_of_world();
  MPI_Request request;
  if (rank == 0) ::usleep(late_us);
  MPI_Ibcast(numbers->data(), count, MPI_INT, 0, comm, &request);
  MPI_Comm_free(&comm);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Barrier(world);
  require(deleted == 1, "the number of communicators that MPI has freed", deleted);
}

void starts_on_a_disconnected_communicator() {
  MPI_Comm comm = copy_of_world();
  MPI_Request request;
  MPI_Recv_init(numbers->data(), count, MPI_INT, 1 - rank, 0, comm, &request);
  MPI_Comm_disconnect(&comm);
  MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  const int result = MPI_Start(&request);
  require(result == MPI_ERR_COMM, "a start on a disconnected communicator", result);
  MPI_Request_free(&request);
  if (rank == 0) send_late(world);
  if (rank == 1) MPI_Recv(numbers->data(), count, MPI_INT, 0, 0, world, MPI_STATUS_IGNORE);
}

// One receive is too short for its message. When hpe ends this receive, the error handler disconnects the communicator
// of another receive, whose message arrives later. MPI itself receives that message, because the program has not yet
// set an error handler.
constexpr int few = 100;
MPI_Comm disconnected_by_handler = MPI_COMM_NULL;
int errors = 0;
void disconnect_after_error(MPI_Comm*, int* code, ...) {
  int kind = 0;
  MPI_Error_class(*code, &kind);
  require(kind == MPI_ERR_TRUNCATE && ++errors == 1, "an error", kind);
  MPI_Comm_disconnect(&disconnected_by_handler);
}
void disconnect_in_an_error_handler() {
  static hpe::array<int> too_short(count / 2), others(few);
  MPI_Comm comm = copy_of_world();
  disconnected_by_handler = copy_of_world();
  if (rank == 0) {
    send_late(comm);
  } else {
    MPI_Request request;
    MPI_Irecv(others.data(), few, MPI_INT, 0, 0, disconnected_by_handler, &request);
    MPI_Request_free(&request);
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(disconnect_after_error, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Irecv(too_short.data(), count / 2, MPI_INT, 0, 0, comm, &request);
    MPI_Request_free(&request);
  }
  pass_token();
  if (rank == 0) {
    ::usleep(late_us);
    MPI_Send(numbers->data(), few, MPI_INT, 1, 0, disconnected_by_handler);
    MPI_Comm_disconnect(&disconnected_by_handler);
  }
  require(rank == 0 || (errors == 1 && others[few - 1] == few - 1), "the number of errors", errors);
  require(disconnected_by_handler == MPI_COMM_NULL, "a communicator was not disconnected");
  if (rank == 0) send_late(world);
  if (rank == 1) MPI_Recv(numbers->data(), count, MPI_INT, 0, 0, world, MPI_STATUS_IGNORE);
}

// MPI_Comm_disconnect waits for a receive for which the program waits later.
void wait_after_disconnect() {
  MPI_Comm comm = copy_of_world();
  MPI_Request request;
  if (rank == 0) send_late(comm);
  if (rank == 1) MPI_Irecv(numbers->data(), count, MPI_INT, 0, 0, comm, &request);
  MPI_Comm_disconnect(&comm);
  if (rank == 0) return;
  int is_over = 0;
  MPI_Test(&request, &is_over, MPI_STATUS_IGNORE);
  require(is_over != 0, "a receive after MPI_Comm_disconnect");
}

struct named_case {
  const char* name;
  void (*run)();
};
constexpr named_case cases[] = {{"finalize", receive_until_finalize},
                                {"disconnect", receive_until_disconnect},
                                {"communicator", receive_on_a_freed_communicator},
                                {"persistent", persistent_receive},
                                {"later", receives_before_later_messages},
                                {"cancelled", cancelled_receive},
                                {"nothing", receive_of_nothing},
                                {"sends", sends_on_a_freed_communicator},
                                {"started", starts_on_a_freed_communicator},
                                {"left", requests_left_to_finalize},
                                {"collective", collective_call_on_a_freed_communicator},
                                {"disconnected", starts_on_a_disconnected_communicator},
                                {"wait", wait_after_disconnect},
                                {"handler", disconnect_in_an_error_handler}};

}  // namespace

int main(int argc, char** argv) {
  const auto chosen = std::find_if(std::begin(cases), std::end(cases), [&](const named_case& each) {
    return argc == 2 && std::strcmp(argv[1], each.name) == 0;
  });
  if (chosen == std::end(cases)) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(world, &rank);
  numbers = new hpe::array<int>(count);
  for (int i = 0; i < count; ++i) (*numbers)[static_cast<std::size_t>(i)] = rank == 0 ? i : 0;
  MPI_Barrier(world);
  chosen->run();
  MPI_Finalize();
  if (chosen->run == requests_left_to_finalize)
    require(deleted == 1, "the number of communicators that MPI has freed", deleted);
  for (int i = 0; i < count; ++i)
    if ((*numbers)[static_cast<std::size_t>(i)] != i) return std::printf("wrong: element %d of rank %d\n", i, rank), 1;
  if (rank == 1 && all_right) std::printf("freed requests: all right\n");
  return all_right ? 0 : 1;
}
