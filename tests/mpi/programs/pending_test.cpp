// Tests the table of operations (interpose/mpi/pending.h), which is linked into this program. The MPI library of the
// table is a part of this program.
#include "interpose/mpi/pending.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <vector>

extern "C" void hpe_mpi_use(void* (*behind)(const char* name));

namespace {

using namespace hpe::interpose::mpi;

// The handles are addresses of these variables.
int first_object = 0, second_object = 0, communicator_object = 0, other_object = 0;
MPI_Request const first = reinterpret_cast<MPI_Request>(&first_object);
MPI_Request const second = reinterpret_cast<MPI_Request>(&second_object);
MPI_Comm const communicator = reinterpret_cast<MPI_Comm>(&communicator_object);
MPI_Comm const other = reinterpret_cast<MPI_Comm>(&other_object);

void require(bool holds, const char* wrong) {
  if (holds) return;
  std::printf("wrong: %s\n", wrong);
  std::fflush(stdout);
  std::_Exit(1);
}

// The MPI library.
std::vector<MPI_Comm> freed;
int comm_free(MPI_Comm* comm) {
  freed.push_back(*comm);
  pending_table::all().look_at_freed();  // as a function of the program that deletes an attribute does
  return MPI_SUCCESS;
}
bool are_complete = false;
int request_get_status(MPI_Request, int* flag, MPI_Status*) {
  *flag = are_complete ? 1 : 0;
  return MPI_SUCCESS;
}
int request_free(MPI_Request*) { return MPI_SUCCESS; }

void* library(const char* name) {
  if (std::strcmp(name, "PMPI_Comm_free") == 0) return reinterpret_cast<void*>(comm_free);
  if (std::strcmp(name, "PMPI_Request_get_status") == 0) return reinterpret_cast<void*>(request_get_status);
  require(std::strcmp(name, "PMPI_Request_free") == 0, name);
  return reinterpret_cast<void*>(request_free);
}

// An operation whose mutex another thread may hold while it uses the table. This operation uses the table itself, which
// has the same effect.
class user_of_table final : public pending {
 public:
  explicit user_of_table(bool starts = false) : pending(on_comm{communicator}, false), starts_(starts) {}
  int begin() override { return MPI_SUCCESS; }
  [[nodiscard]] bool starts_itself() const noexcept override { return starts_; }
  int finish(const MPI_Status* /*status*/) override {
    is_active = false;
    if (during_finish) during_finish();
    return MPI_SUCCESS;
  }
  void drop() noexcept override {}
  [[nodiscard]] bool active() override {
    static_cast<void>(pending_table::all().find(first));
    return is_active;
  }

  bool is_active = true;
  std::function<void()> during_finish;

 private:
  const bool starts_;
};

pending_table& table = pending_table::all();

void communicators_outlive_their_operations() {
  const auto has_freed = [](std::size_t times) {
    table.look_at_freed();
    return freed.size() == times;
  };
  require(!table.keep(communicator) && !table.any_freed(), "a communicator that nobody uses is kept");
  auto held = std::make_shared<user_of_table>();
  table.add(first, held);
  require(!table.keep(other), "a communicator that no operation uses is kept");
  require(table.keep(communicator) && table.any_freed(), "the communicator of an operation is not kept");
  require(table.take(first) == held && has_freed(0), "a communicator is freed while a thread waits for its operation");
  table.remove(first, held);
  require(has_freed(0), "a communicator is freed before its operation has been destroyed");
  held.reset();
  require(has_freed(1) && freed.back() == communicator, "the communicator is not freed");
  require(!table.any_freed() && has_freed(1), "the communicator is freed twice");

  auto left = std::make_shared<user_of_table>();
  table.add(first, left);
  table.abandon(first, left);
  left.reset();
  require(table.keep(communicator) && has_freed(1), "a communicator is freed before the message has arrived");
  are_complete = true;
  require(has_freed(2) && !table.any_freed(), "a communicator is not freed after the message has arrived");
  are_complete = false;

  const auto last = std::make_shared<user_of_table>();
  table.add(first, last);
  require(table.keep(communicator) && has_freed(2), "the communicator of a later operation is not kept");
  table.free_communicators();
  require(has_freed(3) && !table.any_freed(), "MPI_Finalize does not free the communicator");
  table.remove(first, last);
}

void active_operations() {
  const auto of_mpi = std::make_shared<user_of_table>();
  table.add(first, of_mpi);
  require(!table.any_active(communicator), "the table waits for an operation of MPI that the program has not freed");
  table.abandon(first, of_mpi);
  require(table.any_active(communicator), "the table does not wait for an operation whose request was freed");
  require(!table.any_active(other), "the table waits for an operation of another communicator");
  are_complete = true;
  table.look_at_freed();
  are_complete = false;
  require(!table.any_active(communicator), "the table waits for an operation that has ended");
  const auto own = std::make_shared<user_of_table>(true);
  table.add(first, own);
  require(table.any_active(communicator), "the table does not wait for an operation of hpe");
  own->is_active = false;
  require(!table.any_active(communicator), "the table waits for an operation of hpe that has ended");
  own->is_active = true;
  table.forget(communicator);
  require(!table.any_active(communicator) && !table.keep(communicator),
          "an operation has not forgotten the communicator");
  table.remove(first, own);
}

}  // namespace

int main() {
  using namespace std::chrono_literals;
  hpe_mpi_use(library);
  communicators_outlive_their_operations();
  active_operations();

  const auto kept = std::make_shared<user_of_table>(true), abandoned = std::make_shared<user_of_table>();
  table.add(first, kept);
  table.add(second, abandoned);
  table.abandon(second, abandoned);
  std::promise<void> over;
  std::thread([&] {
    require(table.any_active(communicator), "the operations are not active");
    over.set_value();
  }).detach();
  require(over.get_future().wait_for(20s) == std::future_status::ready,
          "the table calls operations while it holds its mutex");
  table.forget(communicator);
  require(!kept->uses(communicator), "an operation has not forgotten the communicator");
  require(!abandoned->uses(communicator), "an operation whose request was freed has not forgotten the communicator");

  // A thread waits for the operation, and another thread begins an operation whose request has the same handle.
  require(table.take(first) == kept, "a wait does not get the operation of its request");
  require(table.find(first) == nullptr, "a request still leads to an operation that a thread has taken");
  const auto later = std::make_shared<user_of_table>();
  table.add(first, later);
  table.remove(first, kept);
  require(table.find(first) == later, "the end of an operation has removed a later one with the same handle");
  require(table.take(first) == later, "a wait does not get the later operation");
  table.forget(communicator);
  require(!later->uses(communicator), "an operation for which a thread waits has not forgotten the communicator");
  table.put_back(first, later);
  require(table.take(first) == later, "an operation that was put back cannot be taken again");
  table.remove(first, later);
  require(table.empty(), "an operation remains");

  // An error handler, which the end of an operation has called, waits for another operation whose request was freed.
  const auto last = std::make_shared<user_of_table>();
  table.add(first, last);
  table.abandon(first, last);
  abandoned->during_finish = [&] {
    require(table.any_active(communicator), "the operation after that of an error is not active");
    table.look_at_freed();
    require(!table.any_active(communicator), "a look in an error handler finishes no operation");
  };
  are_complete = true;
  table.look_at_freed();
  require(!table.any_freed(), "an operation whose request was freed remains");
  std::printf("pending: all right\n");
}
