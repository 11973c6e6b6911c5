// The send functions, and the decision which messages hpe sends by envelope.

#include <algorithm>
#include <climits>
#include <memory>

#include "interpose/mpi/groups.h"
#include "interpose/mpi/messages/board/offers.h"
#include "interpose/mpi/messages/board/receive_inspection.h"
#include "interpose/mpi/messages/message_progress.h"
#include "interpose/mpi/messages/outgoing.h"
#include "interpose/mpi/messages/point_to_point.h"
#include "runtime/base/log.h"
#include "runtime/core/operations/host_access.h"
#include "runtime/trace/recorder.h"

namespace hpe::interpose::mpi {

namespace {

// Whether `p` points to hpe memory whose home is a device, or that is striped over several devices.
bool is_of_devices(const void* p) {
  if (core::host_access::of(p) == nullptr) return false;
  hpePointerInfo info;
  return hpeGetPointerInfo(p, &info) == HPE_SUCCESS &&
         (info.kind == HPE_MEMORY_DEVICE || info.kind == HPE_MEMORY_STRIPED);
}

// Whether rank `rank` may be able to copy a message from memory of the driver. The rank may turn out to be unable to
// access the memory.
bool may_reach(int rank) {
  const offer_board* const board = offer_board::current();
  return board != nullptr && job::current()->is_near(rank) && !board->is_of_no_use(rank);
}

// Whether this rank may send by envelope to rank `rank`, now or, if the send is persistent, at a later start. Asks the
// ranks of this machine to inspect their receives.
bool may_send_to(int rank, std::size_t bytes, const outgoing::mode& how) {
  receive_inspection::of_process().ask_all();
  return (how.persistent && bytes <= INT_MAX) || receive_inspection::accepts_envelope(rank, bytes);
}

// Shares memory of the driver with another rank. Returns nullopt if the rank cannot access the memory. Logs a warning
// if both ranks take turns on one GPU.
std::optional<peer_bytes> shared_with(int rank, adopted_pointers& driver, const void* from, std::size_t extent) {
  if (!may_reach(rank)) return std::nullopt;
  const auto address = reinterpret_cast<std::uintptr_t>(from);
  const auto shared = driver.share(address, extent, adopted_pointers::peer_use::read, driver.queued_now());
  if (!shared) return shared;
  const auto other = offer_board::current()->sends_from(shared->device);
  if (other && driver.takes_turns(address))
    log(log_level::warn,
        "ranks {} and {} use one GPU and take turns on it, which makes them slow; start CUDA's multi-process service "
        "before the program: nvidia-cuda-mps-control -d",
        std::min(*other, job::current()->rank), std::max(*other, job::current()->rank));
  return shared;
}

// Changes `what` so that the message is sent from borrowed device memory, into which `outgoing` first copies the bytes.
// Returns false if the receiver cannot access this memory, or if no device memory is free.
bool gather(outgoing::arguments& what, const layout& which, const void* buf) {
  const auto scattered = which.scattered();
  if (!scattered || !may_reach(what.world_rank)) return false;
  auto copy = what.driver->borrow_beside(reinterpret_cast<std::uintptr_t>(what.from), which.size());
  if (copy == nullptr) return false;
  const auto shared = what.driver->share(reinterpret_cast<std::uintptr_t>(copy.get()), which.size(),
                                         adopted_pointers::peer_use::read, 0);
  if (!shared) return false;
  what.from = copy.get();
  what.rows = {{which.size()}, {}};
  what.shared = shared;
  what.gathered = {moved(buf, scattered->displacement), scattered->which, std::move(copy)};
  return true;
}

}  // namespace

std::shared_ptr<outgoing> send_by_envelope(const void* buf, int count, MPI_Datatype type, int dest, int tag,
                                           MPI_Comm comm, outgoing::mode how) {
  adopted_pointers* const driver = core::host_access::of(buf) == nullptr ? adopted_pointers::of(buf) : nullptr;
  if (driver == nullptr && core::host_access::of(buf) == nullptr) return nullptr;
  if (dest < 0 || count <= 0 || (driver == nullptr && !envelope::fits(count, type)) || !is_intra(comm)) return nullptr;
  const job& running = *job::current();
  int members = 0;
  HPE_REAL(Comm_size)(comm, &members);
  if (dest >= members) return nullptr;
  const int rank = job::world_rank(comm, dest);
  if (rank == MPI_UNDEFINED || (driver == nullptr && rank == running.rank)) return nullptr;
  const layout which = elements(count, type);
  if (which.empty()) return nullptr;
  const auto rows = which.rows();
  outgoing::arguments what{.from = moved(buf, which.begin()),
                           .rows = rows.value_or(placed_box{}).shape,
                           .destination = dest,
                           .world_rank = rank,
                           .tag = tag,
                           .comm = comm,
                           .driver = driver,
                           .shared = {},
                           .gathered = {}};
  const bool is_run = rows && rows->shape.extent.is_one_row();
  if (driver == nullptr) {
    if (!is_run || which.size() < running.least(rank) || !is_of_devices(buf)) return nullptr;
    if (!may_send_to(rank, which.size(), how)) return nullptr;
    return std::make_shared<outgoing>(what, how);
  }
  if (!may_send_to(rank, which.size(), how)) return nullptr;
  if (rows) what.shared = shared_with(rank, *driver, what.from, which.extent());
  if (!what.shared && !gather(what, which, buf) && (!is_run || which.size() < running.large)) return nullptr;
  return std::make_shared<outgoing>(what, how);
}

namespace {

taken send_now(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, bool synchronous,
               const char* function) {
  return guarded(comm, [&]() -> taken {
    const auto send =
        send_by_envelope(buf, count, type, dest, tag, comm, {.synchronous = synchronous, .blocking = true});
    if (send == nullptr) return std::nullopt;
    const trace::recorded here(trace::category::mpi, function);
    return send->carry_out(MPI_STATUS_IGNORE);
  });
}

taken begin_send(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, outgoing::mode how,
                 MPI_Request* request) {
  return guarded(comm, [&]() -> taken {
    const auto send = send_by_envelope(buf, count, type, dest, tag, comm, how);
    if (send == nullptr) return std::nullopt;
    const int result = send->open(request);
    progress::of_process().look();  // receivers of earlier sends may have asked for copies
    return result;
  });
}

}  // namespace

taken large_send(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                 const char* function) {
  return send_now(buf, count, type, dest, tag, comm, false, function);
}

taken large_ssend(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                  const char* function) {
  return send_now(buf, count, type, dest, tag, comm, true, function);
}

taken large_isend(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                  MPI_Request* request) {
  return begin_send(buf, count, type, dest, tag, comm, {}, request);
}

taken large_issend(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                   MPI_Request* request) {
  return begin_send(buf, count, type, dest, tag, comm, {.synchronous = true}, request);
}

taken large_send_init(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                      MPI_Request* request) {
  return begin_send(buf, count, type, dest, tag, comm, {.persistent = true}, request);
}

taken large_ssend_init(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                       MPI_Request* request) {
  return begin_send(buf, count, type, dest, tag, comm, {.persistent = true, .synchronous = true}, request);
}

}  // namespace hpe::interpose::mpi
