// Tests the table of operations (interpose/mpi/pending.h), which is linked into this program. The program does not call
// MPI.
#include "interpose/mpi/pending.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <thread>

namespace {

using namespace hpe::interpose::mpi;

// The handles are addresses of these variables.
int first_object = 0, second_object = 0, communicator_object = 0;
MPI_Request const first = reinterpret_cast<MPI_Request>(&first_object);
MPI_Request const second = reinterpret_cast<MPI_Request>(&second_object);
MPI_Comm const communicator = reinterpret_cast<MPI_Comm>(&communicator_object);

// An operation whose mutex another thread may hold while it uses the table. This operation uses the table itself, which
// has the same effect.
class user_of_table final : public pending {
 public:
  user_of_table() : pending(false) {}
  int begin() override { return MPI_SUCCESS; }
  int finish(const MPI_Status* /*status*/) override { return MPI_SUCCESS; }
  void drop() noexcept override {}
  [[nodiscard]] bool active() override { return true; }
  void await_arrived() override {
    if (during_look) during_look();
  }
  void forget(MPI_Comm comm) override {
    static_cast<void>(pending_table::all().find(first));
    if (comm == communicator) ++forgotten;
  }

  int forgotten = 0;
  std::function<void()> during_look;
};

void require(bool holds, const char* wrong) {
  if (holds) return;
  std::printf("wrong: %s\n", wrong);
  std::fflush(stdout);
  std::_Exit(1);
}

void require_forgotten(const user_of_table& operation, int times, const char* wrong) {
  require(operation.forgotten == times, wrong);
}

}  // namespace

int main() {
  using namespace std::chrono_literals;
  const auto kept = std::make_shared<user_of_table>(), abandoned = std::make_shared<user_of_table>();
  pending_table& table = pending_table::all();
  table.add(first, kept);
  table.add(second, abandoned);
  table.abandon(second, abandoned);
  std::promise<void> over;
  std::thread([&] {
    table.forget(communicator);
    over.set_value();
  }).detach();
  require(over.get_future().wait_for(20s) == std::future_status::ready,
          "the table calls operations while it holds its mutex");
  require_forgotten(*kept, 1, "an operation has not forgotten the communicator");
  require_forgotten(*abandoned, 1, "an operation whose request was freed has not forgotten the communicator");

  // A thread waits for the operation, and another thread begins an operation whose request has the same handle.
  require(table.take(first) == kept, "a wait does not get the operation of its request");
  require(table.find(first) == nullptr, "a request still leads to an operation that a thread has taken");
  table.forget(communicator);
  require_forgotten(*kept, 2, "an operation for which a thread waits has not forgotten the communicator");
  const auto later = std::make_shared<user_of_table>();
  table.add(first, later);
  table.remove(first, kept);
  require(table.find(first) == later, "the end of an operation has removed a later one with the same handle");
  require(table.take(first) == later, "a wait does not get the later operation");
  table.put_back(first, later);
  require(table.take(first) == later, "an operation that was put back cannot be taken again");
  table.remove(first, later);
  require(table.empty(), "an operation remains");

  // A thread looks at the operation, which then calls MPI.
  abandoned->during_look = [&] {
    table.forget(communicator);
    require_forgotten(*abandoned, 3, "an operation at which a thread looks has not forgotten the communicator");
    table.look_at_abandoned();  // as an error handler does
    std::printf("pending: all right\n");
    std::fflush(stdout);
    std::_Exit(0);
  };
  table.look_at_abandoned();
  require(false, "nothing looks at an operation whose request was freed");
}
