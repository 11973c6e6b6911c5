// Tests class progress (interpose/mpi/messages/message_progress.h), which is linked into this program, with an MPI
// library that does not call hpe while it waits, so that hpe has a thread for the transfers. The MPI library is a part
// of this program.
#include <atomic>
#include <chrono>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <thread>

#include "interpose/mpi/messages/message_progress.h"
#include "interpose/mpi/pending.h"

extern "C" void hpe_mpi_use(void* (*behind)(const char* name));

namespace {

using namespace hpe::interpose::mpi;
using namespace std::chrono_literals;

void require(bool holds, const char* wrong) {
  if (holds) return;
  std::printf("wrong: %s\n", wrong);
  std::fflush(stdout);
  std::_Exit(1);
}

// The MPI library, which has one request.
std::atomic<bool> has_arrived{false};
std::atomic<bool> handler_throws{false};  // in the next call by the program's thread
const std::thread::id program = std::this_thread::get_id();
int test_some(int, MPI_Request*, int* done, int* indices, MPI_Status*) {
  if (std::this_thread::get_id() == program && handler_throws.exchange(false))
    throw std::runtime_error("from an error handler of the program");
  *done = has_arrived.exchange(false) ? 1 : 0;
  indices[0] = 0;
  return MPI_SUCCESS;
}
int query_thread(int* level) {
  *level = MPI_THREAD_MULTIPLE;
  return MPI_SUCCESS;
}
std::atomic<bool> is_over{false};  // whether the message has ended
int request_get_status(MPI_Request, int* flag, MPI_Status*) {
  *flag = is_over ? 1 : 0;
  return MPI_SUCCESS;
}
int request_free(MPI_Request*) { return MPI_SUCCESS; }

void* library(const char* name) {
  if (std::strcmp(name, "PMPI_Testsome") == 0) return reinterpret_cast<void*>(test_some);
  if (std::strcmp(name, "PMPI_Query_thread") == 0) return reinterpret_cast<void*>(query_thread);
  if (std::strcmp(name, "PMPI_Request_get_status") == 0) return reinterpret_cast<void*>(request_get_status);
  return std::strcmp(name, "PMPI_Request_free") == 0 ? reinterpret_cast<void*>(request_free) : nullptr;
}

progress& transfers = progress::of_process();

void begin_message() {
  const progress::guard held;
  is_over = false;
  transfers.begun();
  transfers.make_room();
  transfers.when_over(MPI_Request{}, [](const MPI_Status&, int) {
    transfers.over();
    is_over = true;
  });
}

// Whether hpe's thread ends the message that has arrived, while the program makes no calls that wait.
bool is_ended_by_thread() {
  has_arrived = true;
  for (const auto end = std::chrono::steady_clock::now() + 20s; std::chrono::steady_clock::now() < end && !is_over;)
    std::this_thread::sleep_for(1ms);
  return is_over;
}

// Leaves the wait for a message that has not arrived.
std::jmp_buf before_wait;
void leave_wait_by_jump() {
  if (setjmp(before_wait) != 0) return;
  transfers.until([looks = 0]() mutable {
    if (++looks == 3) std::longjmp(before_wait, 1);
    return false;
  });
}

// The receive of the message, whose request the program has freed.
class freed_receive final : public pending {
 public:
  freed_receive() : pending(no_object{}, false) {}
  int begin() override { return MPI_SUCCESS; }
  void await_arrived() override {
    const auto end = std::chrono::steady_clock::now() + 10s;
    transfers.until([&] { return is_over || std::chrono::steady_clock::now() > end; });
    require(is_over, "a turn waits for a message that only a later turn can end");
  }
  int finish(const MPI_Status* /*status*/) override {
    is_finished = true;
    return MPI_SUCCESS;
  }
  void drop() noexcept override {}
  [[nodiscard]] bool active() override { return !is_finished; }

  bool is_finished = false;
};

// A poll calls a wrapper, as those of hpe's collective calls do, when the message has arrived and has not ended.
void call_a_wrapper_in_a_turn() {
  const auto receive = std::make_shared<freed_receive>();
  MPI_Request const request{};
  pending_table::all().add(request, receive);
  pending_table::all().abandon(request, receive);
  begin_message();
  std::atomic<bool> has_called{false};
  {
    const progress::guard held;
    transfers.repeat([&] {
      has_arrived = true;
      leave(MPI_SUCCESS);
      has_called = true;
      return true;
    });
  }
  transfers.until([&] { return has_called && is_over; });
  require(!receive->is_finished, "a turn has finished an operation");
  leave(MPI_SUCCESS);
  require(receive->is_finished, "an operation whose request was freed is not finished");
}

}  // namespace

int main() {
  hpe_mpi_use(library);
  require(transfers.attach(), "the library has all that hpe needs");

  begin_message();
  require(is_ended_by_thread(), "hpe's thread does not continue the transfers");

  begin_message();
  handler_throws = true;
  bool has_caught = false;
  try {
    transfers.until([] { return is_over.load(); });
  } catch (const std::runtime_error&) {
    has_caught = true;
  }
  require(has_caught, "an exception of an error handler does not leave the wait");
  require(is_ended_by_thread(), "the transfers do not continue after an exception");

  begin_message();
  leave_wait_by_jump();
  require(is_ended_by_thread(), "the transfers do not continue after a longjmp");

  call_a_wrapper_in_a_turn();

  begin_message();
  has_arrived = true;
  transfers.until([] { return is_over.load(); });
  transfers.detach();
  std::printf("progress: all right\n");
}
