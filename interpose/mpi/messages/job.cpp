#include "interpose/mpi/messages/job.h"

#include <dlfcn.h>
#include <sys/random.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "interpose/mpi/left_memory.h"
#include "interpose/mpi/messages/board/advertisement_board.h"
#include "interpose/mpi/messages/board/offers.h"
#include "interpose/mpi/messages/board/receive_inspection.h"
#include "interpose/mpi/messages/channel.h"
#include "interpose/mpi/messages/envelope.h"
#include "interpose/mpi/messages/message_progress.h"
#include "interpose/mpi/waiting_call.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/options.h"

namespace hpe::interpose::mpi {

namespace {

std::atomic<const job*> the_current{nullptr};
std::atomic<bool> errors_are_survived{false};

// Stores a random number in `id`. Returns false if the operating system provides no random number. With a number that
// is not random, hpe could mistake a payload for an envelope.
bool draw(job::number& id) { return ::getrandom(id.data(), sizeof id, 0) == sizeof id; }

// Whether hpe intercepts this process's calls of the CUDA driver.
bool is_before_driver() { return ::dlsym(RTLD_DEFAULT, "hpe_cuda_driver_entry") != nullptr; }

// Finds the ranks on this machine and opens the boards that they share.
void meet_ranks_of_this_machine(job& made, MPI_Comm world, int size) {
  made.same_machine.resize(static_cast<std::size_t>(size));
  MPI_Comm machine{};
  HPE_REAL(Comm_split_type)
  (world, MPI_COMM_TYPE_SHARED, made.rank, handles::get().info_null, &machine);
  int members = 0;
  HPE_REAL(Comm_size)(machine, &members);
  for (int m = 0; m < members; ++m) made.same_machine[static_cast<std::size_t>(job::world_rank(machine, m))] = true;
  if (made.direct != 0) {
    offer_board::open(made, machine);
    advertisement_board::open(made, machine);
  }
  HPE_REAL(Comm_free)(&machine);
}

}  // namespace

const job* job::current() noexcept { return the_current.load(std::memory_order_acquire); }

void job::set_survives_errors() noexcept { errors_are_survived.store(true, std::memory_order_relaxed); }
bool job::survives_errors() noexcept { return errors_are_survived.load(std::memory_order_relaxed); }

int job::world_rank(MPI_Comm comm, int member) {
  const MPI_Comm world = handles::get().comm_world;
  if (comm == world) return member;
  MPI_Group of_comm{};
  MPI_Group of_world{};
  int result = MPI_UNDEFINED;
  HPE_REAL(Comm_group)(comm, &of_comm);
  HPE_REAL(Comm_group)(world, &of_world);
  HPE_REAL(Group_translate_ranks)(of_comm, 1, &member, of_world, &result);
  HPE_REAL(Group_free)(&of_comm);
  HPE_REAL(Group_free)(&of_world);
  return result;
}

void job::begin(int level) {
  try {
    auto made = std::make_unique<job>();
    options option = options::valid_in_environment();
    // Check this option before the others: a rank whose other options are invalid must still vote if the other ranks
    // vote.
    if (!option.mpi_pipeline) return;
    bool can = false;
    try {
      set_log_level(option.log);
      option = options::from_environment();
      // An envelope must not arrive in memory that hpe leaves to the MPI library.
      can = !left_memory::exists() && progress::of_process().attach() && draw(made->id);
    } catch (const error& e) {
      log(log_level::error, "messages of device memory are sent as a whole: {}", e.what());
    }
    const MPI_Comm world = handles::get().comm_world;
    static constexpr named_call vote{
        "the vote in MPI_Init, which needs libhpe-mpi.so and the same HPE_MPI_PIPELINE in all ranks,"};
    const waiting_call waiting(vote);
    // Each rank votes 0 if it cannot use the protocol, 2 if hpe intercepts its calls of the CUDA driver, and otherwise
    // 1. The smallest vote applies to all ranks. All ranks use the settings of rank 0.
    int agreed = !can ? 0 : is_before_driver() ? 2 : 1;
    HPE_REAL(Allreduce)
    (MPI_IN_PLACE, &agreed, 1, handles::get().integer, handles::get().min, world);
    if (agreed == 0) return;
    made->all_use_cuda = agreed == 2;
    struct settings {
      number id;
      std::uint64_t large;
      std::uint64_t direct;
      std::uint64_t chunk;
    } common{};
    common.id = made->id;
    common.large = std::max<std::uint64_t>(option.mpi_large, envelope_bytes);
    common.direct = option.mpi_direct == 0 ? 0 : std::max<std::uint64_t>(option.mpi_direct, envelope_bytes);
    common.chunk = std::max<std::uint64_t>(option.mpi_chunk, 1);
    HPE_REAL(Bcast)(&common, sizeof common, handles::get().byte, 0, world);
    made->id = common.id;
    made->large = common.large;
    made->direct = common.direct;
    made->chunk = common.chunk;
    int size = 0;
    made->several_threads = level == MPI_THREAD_MULTIPLE;
    HPE_REAL(Comm_rank)(world, &made->rank);
    HPE_REAL(Comm_size)(world, &size);
    HPE_REAL(Comm_dup)(world, &made->channel);
    HPE_REAL(Comm_dup)(handles::get().comm_self, &made->self);
    HPE_REAL(Comm_set_errhandler)(made->channel, handles::get().errors_return);
    meet_ranks_of_this_machine(*made, world, size);
    receive_inspection::of_process().open(*made);
    // Never deleted, because other threads may read it until the process ends.
    the_current.store(made.release(), std::memory_order_release);
    channel::of_process().open();
  } catch (const error& e) {
    log(log_level::error, "messages of device memory are sent as a whole: {}", e.what());
  }
}

namespace {

void await_own_transfers() {
  progress& transfers = progress::of_process();
  transfers.until([&] { return transfers.owes_nothing(); });
}

}  // namespace

void job::await_transfers() {
  if (current() == nullptr) return;
  await_own_transfers();
  // Other ranks may still send to receives of this rank whose requests the program has freed. When all ranks have
  // waited for their own transfers, such messages have been received, and no further message follows.
  MPI_Request all_have{};
  HPE_REAL(Ibarrier)(current()->channel, &all_have);
  progress::of_process().until([&] {
    int flag = 0;
    return HPE_REAL(Test)(&all_have, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS || flag != 0;
  });
}

void job::end() {
  if (current() == nullptr) return;
  await_own_transfers();
  the_current.store(nullptr, std::memory_order_release);
  advertisement_board::close();
  offer_board::close();
  channel::of_process().close();
}

}  // namespace hpe::interpose::mpi
