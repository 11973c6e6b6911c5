// Tests MPI_Finalize. Each test ends the job in a process of its own.

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "interpose/mpi/messages/message_progress.h"
#include "interpose/mpi/pending.h"
#include "tests/mpi/programs/fake_mpi.h"

namespace {

using namespace hpe::interpose::mpi;

template <class Function>
void* address(Function* function) {
  return reinterpret_cast<void*>(function);
}

// The message arrives together with the last message of the barrier in which all ranks wait for their transfers.
fake_mpi::message* message = nullptr;
int i_barrier(MPI_Comm, MPI_Request*) { return MPI_SUCCESS; }
int test(MPI_Request*, int* flag, MPI_Status*) {
  fake_mpi::complete(*message);
  *flag = 1;
  return MPI_SUCCESS;
}
int succeed(MPI_Request*) { return MPI_SUCCESS; }
int finalize() { return MPI_SUCCESS; }

// A receive of hpe's own whose request the program has freed.
class freed_receive final : public pending {
 public:
  freed_receive() : pending(no_object{}, false) {
    const progress::guard held;
    progress& transfers = progress::of_process();
    fake_mpi::messages().push_back({});
    message = &fake_mpi::messages().back();
    transfers.begun();
    transfers.make_room();
    transfers.when_over(reinterpret_cast<MPI_Request>(message), [this, &transfers](const MPI_Status&, int) {
      transfers.over();
      is_active_ = false;
    });
  }

  int begin() override { return MPI_SUCCESS; }
  void await_arrived() override { progress::of_process().catch_up(); }
  int finish(const MPI_Status* /*status*/) override {
    is_finished = !is_active_;
    return MPI_SUCCESS;
  }
  void drop() noexcept override {}
  [[nodiscard]] bool active() override { return is_active_; }

  bool is_finished = false;

 private:
  bool is_active_ = true;
};

class Finalize : public fake_mpi::with_job {};

TEST_F(Finalize, ReceivesFreedMessagesThatArriveWithTheLastBarrier) {
  fake_mpi::symbols()["PMPI_Ibarrier"] = address(i_barrier);
  fake_mpi::symbols()["PMPI_Test"] = address(test);
  fake_mpi::symbols()["PMPI_Cancel"] = address(succeed);
  fake_mpi::symbols()["PMPI_Request_free"] = address(succeed);
  fake_mpi::symbols()["PMPI_Finalize"] = address(finalize);
  fake_mpi::library().request_is_complete = 1;
  EXPECT_EXIT(
      {
        const auto receive = std::make_shared<freed_receive>();
        MPI_Request const request = reinterpret_cast<MPI_Request>(message);
        pending_table::all().add(request, receive);
        pending_table::all().abandon(request, receive);
        ::MPI_Finalize();
        std::_Exit(receive->is_finished ? 0 : 1);
      },
      testing::ExitedWithCode(0), "")
      << "hpe no longer continues transfers when it looks at freed requests for the last time";
}

}  // namespace
