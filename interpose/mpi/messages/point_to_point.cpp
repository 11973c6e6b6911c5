#include "interpose/mpi/messages/point_to_point.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "interpose/mpi/groups.h"
#include "interpose/mpi/messages/incoming.h"
#include "interpose/mpi/messages/offers.h"
#include "interpose/mpi/messages/outgoing.h"
#include "interpose/mpi/messages/set_aside.h"
#include "runtime/core/operations/host_access.h"
#include "runtime/trace/recorder.h"

namespace hpe::interpose::mpi {

namespace {

// Whether an envelope fits.
bool is_looked_at(int count, MPI_Datatype type) {
  if (count <= 0 || type == nullptr || type == handles::get().datatype_null) return false;
  MPI_Count size = 0;
  HPE_REAL(Type_size_x)(type, &size);
  return size * count >= static_cast<MPI_Count>(envelope_bytes);
}

// Receives with less room than an envelope that MPI has and hpe does not look at.
std::atomic<std::size_t> unseen_receives{0};

// Whether such receives are looked at. Once the program uses CUDA they are, if none was begun before that; then other
// ranks may send device memory of any size by envelopes.
bool looks_at_all() {
  enum class choice : std::uint8_t { none, being_made, no, yes };
  static std::atomic<choice> chosen{choice::none};
  offer_board* const board = offer_board::current();
  if (board == nullptr || !adopted_pointers::exist()) return false;
  choice before = choice::none;
  if (chosen.compare_exchange_strong(before, choice::being_made)) {
    chosen = unseen_receives == 0 ? choice::yes : choice::no;
    if (chosen == choice::yes) board->set_looks();
  }
  while (chosen == choice::being_made) std::this_thread::yield();
  return chosen == choice::yes;
}

struct unseen_receive {
  unseen_receive() { ++unseen_receives; }
  ~unseen_receive() { --unseen_receives; }
  unseen_receive(const unseen_receive&) = delete;
  unseen_receive& operator=(const unseen_receive&) = delete;
};

// Whether what MPI has for a receive may be an envelope whose sender is to be told, or have been taken out of MPI
// already.
bool may_bring_envelope(int count, MPI_Datatype type, int source, MPI_Comm comm) {
  return count >= 0 && source != MPI_PROC_NULL &&
         (is_looked_at(count, type) || looks_at_all() || job::survives_errors() || !set_aside::of_process().empty()) &&
         is_intra(comm);
}

// Whether devices have the memory.
bool is_of_devices(const void* p) {
  if (core::host_access::of(p) == nullptr) return false;
  hpePointerInfo info;
  return hpeGetPointerInfo(p, &info) == HPE_SUCCESS &&
         (info.kind == HPE_MEMORY_DEVICE || info.kind == HPE_MEMORY_STRIPED);
}

// Whether a rank may be able to copy memory of the driver.
bool may_reach(int rank, std::size_t bytes) {
  const offer_board* const board = offer_board::current();
  return board != nullptr && job::current()->is_near(rank) && !board->is_of_no_use(rank) &&
         (bytes >= envelope_bytes || board->looks(rank));
}

// Names memory of the driver to another rank. Empty: it goes another way.
std::optional<peer_bytes> shared_with(int rank, adopted_pointers& driver, const void* from, std::size_t bytes,
                                      std::size_t extent) {
  if (!may_reach(rank, bytes)) return std::nullopt;
  return driver.share(reinterpret_cast<std::uintptr_t>(from), extent, adopted_pointers::peer_use::read,
                      driver.queued_now());
}

// Whether scattered bytes go by way of a row in device memory.
bool gather(outgoing::arguments& what, const layout& which, const void* buf) {
  const auto scattered = which.scattered();
  const bool few = which.size() < job::current()->large;
  if (!scattered || (few && !may_reach(what.world_rank, which.size()))) return false;
  const std::byte* const origin = moved(buf, scattered->displacement);
  auto row = what.driver->borrow_beside(reinterpret_cast<std::uintptr_t>(what.from), which.size());
  if (row == nullptr) return false;
  what.from = row.get();
  what.rows = {0, which.size(), 1, 1, 0, 0};
  what.shared = shared_with(what.world_rank, *what.driver, what.from, which.size(), which.size());
  what.gathered = {origin, scattered->which, std::move(row)};
  return true;
}

std::shared_ptr<outgoing> large(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                                outgoing::mode how) {
  adopted_pointers* const driver = core::host_access::of(buf) == nullptr ? adopted_pointers::of(buf) : nullptr;
  if (driver == nullptr && core::host_access::of(buf) == nullptr) return nullptr;
  if (dest < 0 || count <= 0 || (driver == nullptr && !is_looked_at(count, type)) || !is_intra(comm)) return nullptr;
  const job& running = *job::current();
  int members = 0;
  HPE_REAL(Comm_size)(comm, &members);
  if (dest >= members) return nullptr;
  const int rank = job::world_rank(comm, dest);
  if (rank == MPI_UNDEFINED || rank == running.rank) return nullptr;
  const layout which = elements(count, type);
  if (which.empty()) return nullptr;
  const auto rows = which.rows();
  outgoing::arguments what{.from = moved(buf, which.begin()),
                           .rows = rows.value_or(byte_rows{}),
                           .destination = dest,
                           .world_rank = rank,
                           .tag = tag,
                           .comm = comm,
                           .driver = driver,
                           .shared = {},
                           .gathered = {}};
  const bool is_run = rows && rows->is_one_run();
  if (driver == nullptr) {
    if (!is_run || which.size() < running.least(rank) || !is_of_devices(buf)) return nullptr;
    return std::make_shared<outgoing>(what, how);
  }
  if (rows) what.shared = shared_with(rank, *driver, what.from, which.size(), which.extent());
  if (!what.shared && !is_run && !gather(what, which, buf)) return nullptr;
  if (!what.shared && which.size() < running.large) return nullptr;
  return std::make_shared<outgoing>(what, how);
}

template <class Action>
taken guarded(MPI_Comm comm, Action&& action) {
  try {
    return action();
  } catch (const left_to_mpi&) {
    return std::nullopt;
  } catch (const error& e) {
    return raise(comm, e);
  } catch (const std::bad_alloc&) {
    return raise(comm, error(HPE_ERROR_OUT_OF_MEMORY, "the host has no memory left for the records of a call"));
  }
}

// The bytes of a buffer without gaps; empty for all others.
std::optional<std::size_t> bytes_in_one_run(int count, MPI_Datatype type) {
  if (count <= 0 || type == nullptr || type == handles::get().datatype_null) return std::nullopt;
  const auto [size, extent, true_lower, true_extent] = measures_of(type);
  const bool whole = size == extent && size == true_extent && true_lower == 0;
  return whole ? std::optional(static_cast<std::size_t>(size) * static_cast<std::size_t>(count)) : std::nullopt;
}

// A blocking receive in ordinary memory, without gaps, with less room than an envelope: most of those that programs
// have.
template <class Call>
int receive_little(const char* function, const receive& what, std::size_t room, MPI_Status* status, Call&& call) {
  auto landing = std::make_unique_for_overwrite<envelope::wire>();
  const int result = call(incoming::slot{landing->data(), envelope_bytes, handles::get().byte}, status);
  if (result != MPI_SUCCESS) return result;
  const std::size_t bytes = bytes_received(*status);
  if (bytes <= room) {
    std::memcpy(what.buffer, landing->data(), bytes);
    return result;
  }
  const auto it = std::make_shared<incoming>(what, false);
  it->landed(std::move(landing));
  if (!it->is_left(*status)) return result;
  const trace::recorded here(trace::category::mpi, function);
  return it->carry_out(status);
}

// A blocking receive: call(slot, status) is MPI's. A trace shows it if hpe has something to do with it.
template <class Call>
int receive_now(const char* function, const receive& what, MPI_Status* status, Call&& call) {
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  std::optional<trace::recorded> here;
  std::shared_ptr<incoming> it;
  if (concerns(what.buffer)) {
    here.emplace(trace::category::mpi, function);
  } else if (const auto room = bytes_in_one_run(what.count, what.type); room && *room < envelope_bytes) {
    return receive_little(function, what, *room, status, call);
  }
  if (here || !is_looked_at(what.count, what.type)) it = std::make_shared<incoming>(what, false);
  const int result = call(it ? it->where() : incoming::slot{what.buffer, what.count, what.type}, status);
  if (result != MPI_SUCCESS) return result;
  if (!it) {
    if (bytes_received(*status) != envelope_bytes) return result;
    it = std::make_shared<incoming>(what, false);
  }
  if (!it->is_left(*status)) return result;
  if (!here) here.emplace(trace::category::mpi, function);
  return it->carry_out(status);
}

// A message whose handle the program has, and that was looked into.
std::shared_ptr<incoming> receive_of(void* buf, int count, MPI_Datatype type, MPI_Message* message) {
  if (message == nullptr) return nullptr;
  const auto found = set_aside::of_process().taken_back(*message);
  if (!found) return nullptr;
  *message = static_cast<MPI_Message>(find_variable("ompi_message_null"));
  auto result = std::make_shared<incoming>(receive{buf, count, type, 0, 0, found->comm}, false);
  result->found(*found);
  return result;
}

}  // namespace

namespace {

taken send_now(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, bool synchronous,
               const char* function) {
  return guarded(comm, [&]() -> taken {
    const auto send = large(buf, count, type, dest, tag, comm, {.synchronous = synchronous, .blocking = true});
    if (send == nullptr) return std::nullopt;
    const trace::recorded here(trace::category::mpi, function);
    return send->carry_out(MPI_STATUS_IGNORE);
  });
}

taken begin_send(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, outgoing::mode how,
                 MPI_Request* request) {
  return guarded(comm, [&]() -> taken {
    const auto send = large(buf, count, type, dest, tag, comm, how);
    if (send == nullptr) return std::nullopt;
    return send->open(request);
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

taken any_recv(void* buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status* status,
               const char* function) {
  return guarded(comm, [&]() -> taken {
    if (!may_bring_envelope(count, type, source, comm)) {
      if (concerns(buf)) return std::nullopt;
      const unseen_receive here;
      if (!may_bring_envelope(count, type, source, comm))
        return HPE_REAL(Recv)(buf, count, type, source, tag, comm, status);
    }
    const receive what{buf, count, type, source, tag, comm};
    if (!set_aside::of_process().empty()) return std::make_shared<incoming>(what, false)->carry_out(status);
    return receive_now(function, what, status, [&](const incoming::slot& to, MPI_Status* its) {
      return HPE_REAL(Recv)(to.place, to.count, to.type, source, tag, comm, its);
    });
  });
}

taken any_irecv(void* buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request* request) {
  return guarded(comm, [&]() -> taken {
    if (!may_bring_envelope(count, type, source, comm)) {
      // For good: when it is over is not seen.
      ++unseen_receives;
      if (!may_bring_envelope(count, type, source, comm)) return std::nullopt;
    }
    return std::make_shared<incoming>(receive{buf, count, type, source, tag, comm}, false)->open(request);
  });
}

// A start may find a message that was taken out of MPI, however short.
taken any_recv_init(void* buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request* request) {
  return guarded(comm, [&]() -> taken {
    if (count < 0 || source == MPI_PROC_NULL || !is_intra(comm)) return std::nullopt;
    return std::make_shared<incoming>(receive{buf, count, type, source, tag, comm}, true)->open(request);
  });
}

taken any_mrecv(void* buf, int count, MPI_Datatype type, MPI_Message* message, MPI_Status* status,
                const char* function) {
  return guarded(nullptr, [&]() -> taken {
    const auto it = receive_of(buf, count, type, message);
    if (it == nullptr) return std::nullopt;
    const trace::recorded here(trace::category::mpi, function);
    return it->carry_out(status);
  });
}

taken any_imrecv(void* buf, int count, MPI_Datatype type, MPI_Message* message, MPI_Request* request) {
  return guarded(nullptr, [&]() -> taken {
    const auto it = receive_of(buf, count, type, message);
    return it != nullptr ? taken(it->open(request)) : std::nullopt;
  });
}

taken any_sendrecv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag, void* recvbuf,
                   int recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status* status,
                   const char* function) {
  return guarded(comm, [&]() -> taken {
    const auto send = large(sendbuf, sendcount, sendtype, dest, sendtag, comm, {.blocking = true});
    if (send != nullptr) {
      const trace::recorded here(trace::category::mpi, function);
      if (const int begun = send->launch(); begun != MPI_SUCCESS) return begun;
      const int received = ::MPI_Recv(recvbuf, recvcount, recvtype, source, recvtag, comm, status);
      const int sent = send->wait(MPI_STATUS_IGNORE);
      return received != MPI_SUCCESS ? received : sent;
    }
    if (!set_aside::of_process().empty()) {
      const trace::recorded here(trace::category::mpi, function);
      MPI_Request request = handles::get().request_null;
      const int begun = ::MPI_Isend(sendbuf, sendcount, sendtype, dest, sendtag, comm, &request);
      if (begun != MPI_SUCCESS) return begun;
      const int received = ::MPI_Recv(recvbuf, recvcount, recvtype, source, recvtag, comm, status);
      const int sent = ::MPI_Wait(&request, MPI_STATUS_IGNORE);
      return received != MPI_SUCCESS ? received : sent;
    }
    if (!may_bring_envelope(recvcount, recvtype, source, comm)) {
      if (concerns(sendbuf) || concerns(recvbuf)) return std::nullopt;
      const unseen_receive here;
      if (!may_bring_envelope(recvcount, recvtype, source, comm))
        return HPE_REAL(Sendrecv)(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source,
                                  recvtag, comm, status);
    }
    std::optional<staged_buffer> staged;
    const void* from = sendbuf;
    if (concerns(sendbuf)) {
      staged.emplace(sendbuf, elements(sendcount, sendtype), host_use::read, false);
      from = staged->pointer();
    }
    return receive_now(function, {recvbuf, recvcount, recvtype, source, recvtag, comm}, status,
                       [&](const incoming::slot& to, MPI_Status* its) {
                         return HPE_REAL(Sendrecv)(from, sendcount, sendtype, dest, sendtag, to.place, to.count,
                                                   to.type, source, recvtag, comm, its);
                       });
  });
}

// What is sent is kept apart from what is received, and goes as a whole.
taken any_sendrecv_replace(void* buf, int count, MPI_Datatype type, int dest, int sendtag, int source, int recvtag,
                           MPI_Comm comm, MPI_Status* status, const char* function) {
  return guarded(comm, [&]() -> taken {
    if (!may_bring_envelope(count, type, source, comm)) {
      if (concerns(buf)) return std::nullopt;
      const unseen_receive here;
      if (!may_bring_envelope(count, type, source, comm))
        return HPE_REAL(Sendrecv_replace)(buf, count, type, dest, sendtag, source, recvtag, comm, status);
    }
    std::optional<staged_buffer> staged;
    if (concerns(buf)) staged.emplace(buf, elements(count, type), host_use::read, false);
    if (set_aside::of_process().empty()) {
      const auto exchange = [&](const incoming::slot& to, MPI_Status* its) {
        if (to.place == buf)
          return HPE_REAL(Sendrecv_replace)(buf, count, type, dest, sendtag, source, recvtag, comm, its);
        return HPE_REAL(Sendrecv)(staged ? staged->pointer() : buf, count, type, dest, sendtag, to.place, to.count,
                                  to.type, source, recvtag, comm, its);
      };
      return receive_now(function, {buf, count, type, source, recvtag, comm}, status, exchange);
    }
    const trace::recorded here(trace::category::mpi, function);
    std::vector<std::byte> packed(static_cast<std::size_t>(pack_size(count, type, comm)));
    int size = 0;
    HPE_REAL(Pack)
    (staged ? staged->pointer() : buf, count, type, packed.data(), static_cast<int>(packed.size()), &size, comm);
    MPI_Request request = handles::get().request_null;
    const auto as_packed = static_cast<MPI_Datatype>(find_variable("ompi_mpi_packed"));
    if (const int failed = HPE_REAL(Isend)(packed.data(), size, as_packed, dest, sendtag, comm, &request);
        failed != MPI_SUCCESS)
      return failed;
    const int received = ::MPI_Recv(buf, count, type, source, recvtag, comm, status);
    const int sent = HPE_REAL(Wait)(&request, MPI_STATUS_IGNORE);
    return received != MPI_SUCCESS ? received : sent;
  });
}

}  // namespace hpe::interpose::mpi
