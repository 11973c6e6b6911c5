// Tests the table of operations (interpose/mpi/pending.h), which is linked into this program. The program does not call
// MPI.
#include "interpose/mpi/pending.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
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
  void forget(MPI_Comm comm) override {
    if (comm == communicator && pending_table::all().find(first) != nullptr) ++forgotten;
  }

  int forgotten = 0;
};

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
  if (over.get_future().wait_for(20s) != std::future_status::ready) {
    std::printf("wrong: the table calls operations while it holds its mutex\n");
    std::fflush(stdout);
    std::_Exit(1);
  }
  if (kept->forgotten != 1 || abandoned->forgotten != 1) {
    std::printf("wrong: %d and %d operations have forgotten the communicator\n", kept->forgotten, abandoned->forgotten);
    return 1;
  }
  std::printf("pending: all right\n");
  return 0;
}
