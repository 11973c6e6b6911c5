#include "interpose/mpi/messages/point_to_point.h"

#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "interpose/mpi/groups.h"
#include "interpose/mpi/messages/board/receive_inspection.h"
#include "interpose/mpi/messages/incoming.h"
#include "interpose/mpi/messages/message_progress.h"
#include "interpose/mpi/messages/outgoing.h"
#include "interpose/mpi/messages/set_aside.h"
#include "interpose/mpi/messages/unmatched_sends.h"
#include "interpose/mpi/messages/waits.h"
#include "runtime/core/operations/host_access.h"
#include "runtime/trace/recorder.h"

namespace hpe::interpose::mpi {

namespace {

// Whether a message is in device memory or hpe memory. If so, asks the ranks of this machine to inspect their receives.
bool asks_if_of_device(const void* buf, int count) {
  if (count == 0 || !concerns(buf)) return false;
  receive_inspection::of_process().ask_all();
  return true;
}

// Whether hpe can carry out a receive itself. MPI carries out the others, which never get envelopes.
bool hpe_can_receive(int count, int source, MPI_Comm comm) {
  return count >= 0 && source != MPI_PROC_NULL && is_intra(comm);
}

// Whether hpe must inspect a receive, because it may get an envelope or a message that hpe has already taken out of
// MPI.
bool may_bring_envelope(int count, MPI_Datatype type, int source, MPI_Comm comm) {
  return receive_inspection::any() &&
         (receive_inspection::of_process().needs(envelope::fits(count, type)) || !set_aside::of_process().empty()) &&
         hpe_can_receive(count, source, comm);
}

// Whether an envelope may fit into a receive buffer. True if the number of elements alone suffices, because a query of
// the type's size takes longer.
bool may_fit_envelope(int count, MPI_Datatype type) {
  return count >= static_cast<int>(envelope_bytes) || envelope::fits(count, type);
}

// Whether hpe may have taken the message of a receive out of MPI, or another thread may take it out before the receive
// is posted.
bool may_be_set_aside(int source, MPI_Comm comm) {
  const bool by_other_thread = job::current()->several_threads && receive_inspection::any();
  return (!set_aside::of_process().empty() || by_other_thread) && source != MPI_PROC_NULL && is_intra(comm);
}

// Returns the number of bytes of a receive buffer; nullopt if the buffer has gaps.
std::optional<std::size_t> bytes_in_one_run(int count, MPI_Datatype type) {
  if (count <= 0 || is_null(type, handles::get().datatype_null)) return std::nullopt;
  const auto [size, extent, true_lower, true_extent] = measures_of(type);
  const bool whole = size == extent && size == true_extent && true_lower == 0;
  return whole ? std::optional(saturated_product(static_cast<std::size_t>(size), static_cast<std::size_t>(count)))
               : std::nullopt;
}

// Calls MPI's own blocking receive and returns its result. Returns nullopt, without effect, if hpe may have taken the
// message out of MPI. `not_inspected`: set if hpe does not inspect the receive.
taken receive_in_mpi(const incoming::buffer_arguments& to, const receive& what, MPI_Status* status,
                     receive_inspection::uninspected* not_inspected = nullptr) {
  if (!job::current()->several_threads)
    return waits::receive(to.place, to.count, to.type, what.source, what.tag, what.comm, status);
  MPI_Request request = handles::get().request_null;
  int begun = MPI_SUCCESS;
  const auto post = [&] {
    begun = HPE_REAL(Irecv)(to.place, to.count, to.type, what.source, what.tag, what.comm, &request);
  };
  if (!may_be_set_aside(what.source, what.comm))
    post();
  else if (!set_aside::of_process().if_empty(post))
    return std::nullopt;
  if (not_inspected != nullptr) not_inspected->posted();
  return begun == MPI_SUCCESS ? waits::one(&request, status) : begun;
}

// A blocking receive that first searches the messages that hpe has taken out of MPI. Returns the result of the call.
int receive_by_request(const char* function, const receive& what, MPI_Status* status) {
  const trace::recorded here(trace::category::mpi, function);
  return std::make_shared<incoming>(what, false)->carry_out(status);
}

// A blocking receive whose buffer is ordinary memory without gaps and smaller than an envelope (`room` bytes). Most
// receives of programs are of this kind. Returns the result of the call.
template <class Call>
int receive_little(const char* function, const receive& what, std::size_t room, MPI_Status* status, Call&& call) {
  auto landing = envelope::landing();
  const taken received = call(incoming::buffer_arguments{landing.get(), envelope_bytes, handles::get().byte}, status);
  if (!received) return receive_by_request(function, what, status);
  const int result = *received;
  if (result != MPI_SUCCESS) return result;
  const std::size_t bytes = bytes_received(*status);
  if (bytes <= room && !envelope::recognise(landing.get(), bytes)) {
    std::memcpy(what.buffer, landing.get(), bytes);
    return result;
  }
  const auto it = std::make_shared<incoming>(what, false);
  it->landed(std::move(landing));
  if (!it->is_left(*status)) return result;
  const trace::recorded here(trace::category::mpi, function);
  return it->carry_out(status);
}

// Creates a receive for a blocking call. Advertises the receive first, before slower steps, because the sender may
// already wait for it.
std::shared_ptr<incoming> begin_blocking(const receive& what) {
  const layout which = elements(what.count, what.type);
  std::unique_ptr<advertisement_board::advertisement> advertised;
  if (!job::current()->several_threads) {  // another thread could post a receive first
    const progress::guard held;
    advertised = advertise(what, which);
  }
  return std::make_shared<incoming>(what, std::move(advertised));
}

// A blocking receive. call(slot, status) calls MPI's own receive and may return nullopt, as receive_in_mpi() does. A
// trace shows the receive if its buffer is in device memory or hpe memory, or if hpe fetches the payload. Returns the
// result of the call.
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
  if (here || !envelope::fits(what.count, what.type)) it = begin_blocking(what);
  const taken received =
      call(it ? it->where() : incoming::buffer_arguments{what.buffer, what.count, what.type}, status);
  if (it && (!received || *received != MPI_SUCCESS)) it->await_settled();
  if (!received) {
    it.reset();
    return receive_by_request(function, what, status);
  }
  const int result = *received;
  if (result != MPI_SUCCESS) return result;
  if (!it) {
    if (!envelope::is_length(bytes_received(*status))) return result;
    it = std::make_shared<incoming>(what, false);
  }
  if (!it->is_left(*status)) return result;
  if (!here) here.emplace(trace::category::mpi, function);
  return it->carry_out(status);
}

// The receive of a call that also sends. The receive counts as an operation in progress (progress::busy), so that polls
// of the send do not spin as if the send were the only operation.
int receive_beside_send(void* buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                        MPI_Status* status) {
  if (source == MPI_PROC_NULL) return ::MPI_Recv(buf, count, type, source, tag, comm, status);
  const progress::busy receiving;
  return ::MPI_Recv(buf, count, type, source, tag, comm, status);
}

// Returns a receive for a message whose handle is of a copy that set_aside::look_into() has made; nullptr for other
// handles.
std::shared_ptr<incoming> receive_of(void* buf, int count, MPI_Datatype type, MPI_Message* message) {
  if (message == nullptr) return nullptr;
  const auto found = set_aside::of_process().taken_back(*message);
  if (!found) return nullptr;
  *message = handles::get().message_null;
  auto result = std::make_shared<incoming>(receive{buf, count, type, 0, 0, found->comm}, false);
  result->found(*found);
  return result;
}

// Nonblocking receives of at least this many bytes call progress::look_at_arrivals(). Between two H100s, 64 messages of
// 16 MiB reached 356 GB/s with this call and 332 GB/s without it (measured on two machines). With messages of 1 MiB,
// the call would be slower: 40 GB/s with it, 136 GB/s without it.
constexpr MPI_Count long_message = MPI_Count{2} << 20;

}  // namespace

taken any_recv(void* buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status* status,
               const char* function) {
  return guarded(comm, [&]() -> taken {
    const receive what{buf, count, type, source, tag, comm};
    const unadvertised_receive::call here;
    if (asks_if_of_device(buf, count)) {
      if (!hpe_can_receive(count, source, comm)) return std::nullopt;
    } else if (!may_bring_envelope(count, type, source, comm)) {
      receive_inspection::uninspected not_inspected(may_fit_envelope(count, type));
      if (!may_bring_envelope(count, type, source, comm))
        if (const taken received = receive_in_mpi({buf, count, type}, what, status, &not_inspected)) return received;
    }
    if (!set_aside::of_process().empty()) return receive_by_request(function, what, status);
    return receive_now(function, what, status, [&](const incoming::buffer_arguments& to, MPI_Status* its) {
      return receive_in_mpi(to, what, its);
    });
  });
}

taken any_irecv(void* buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request* request) {
  return guarded(comm, [&]() -> taken {
    if (source == MPI_PROC_NULL) return std::nullopt;
    const bool staged = asks_if_of_device(buf, count);
    if (staged) {
      if (!hpe_can_receive(count, source, comm)) return std::nullopt;
    } else if (!may_bring_envelope(count, type, source, comm)) {
      receive_inspection::uninspected not_inspected(may_fit_envelope(count, type));
      if (!may_bring_envelope(count, type, source, comm)) {
        int begun = MPI_SUCCESS;
        const auto post = [&] { begun = HPE_REAL(Irecv)(buf, count, type, source, tag, comm, request); };
        bool posted = true;
        if (may_be_set_aside(source, comm))
          posted = set_aside::of_process().if_empty(post);
        else
          post();
        if (posted) {
          if (begun == MPI_SUCCESS && is_intra(comm)) not_inspected.lasts(*request);
          return begun;
        }
      }
    }
    const int result = std::make_shared<incoming>(receive{buf, count, type, source, tag, comm}, false)->open(request);
    if (staged && bytes_of(count, type) >= long_message) progress::of_process().look_at_arrivals();
    return result;
  });
}

// hpe carries out persistent receives of any length itself, because at a later start, hpe may have taken the message
// out of MPI.
taken any_recv_init(void* buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request* request) {
  return guarded(comm, [&]() -> taken {
    if (!hpe_can_receive(count, source, comm)) return std::nullopt;
    (void)asks_if_of_device(buf, count);
    return std::make_shared<incoming>(receive{buf, count, type, source, tag, comm}, true)->open(request);
  });
}

taken any_mrecv(void* buf, int count, MPI_Datatype type, MPI_Message* message, MPI_Status* status,
                const char* function) {
  return guarded(MPI_Comm{}, [&]() -> taken {
    const unadvertised_receive::call receiving;
    if (!asks_if_of_device(buf, count)) receive_inspection::notice();
    const auto it = receive_of(buf, count, type, message);
    if (it == nullptr) return std::nullopt;
    const trace::recorded here(trace::category::mpi, function);
    return it->carry_out(status);
  });
}

taken any_imrecv(void* buf, int count, MPI_Datatype type, MPI_Message* message, MPI_Request* request) {
  return guarded(MPI_Comm{}, [&]() -> taken {
    const unadvertised_receive::call here;
    if (!asks_if_of_device(buf, count)) receive_inspection::notice();
    const auto it = receive_of(buf, count, type, message);
    return it != nullptr ? taken(it->open(request)) : std::nullopt;
  });
}

taken any_sendrecv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag, void* recvbuf,
                   int recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status* status,
                   const char* function) {
  return guarded(comm, [&]() -> taken {
    const unadvertised_receive::call receiving;
    // A send to MPI_PROC_NULL sends nothing, so the call is only a receive.
    const bool staged_send = concerns(sendbuf);
    if (dest == MPI_PROC_NULL && staged_send)
      return ::MPI_Recv(recvbuf, recvcount, recvtype, source, recvtag, comm, status);
    const bool of_device = asks_if_of_device(sendbuf, sendcount) || asks_if_of_device(recvbuf, recvcount);
    const auto send =
        staged_send ? send_by_envelope(sendbuf, sendcount, sendtype, dest, sendtag, comm, {.blocking = true}) : nullptr;
    if (send != nullptr) {
      const trace::recorded here(trace::category::mpi, function);
      if (const int begun = send->launch(); begun != MPI_SUCCESS) return begun;
      const int received = receive_beside_send(recvbuf, recvcount, recvtype, source, recvtag, comm, status);
      const int sent = send->wait(MPI_STATUS_IGNORE);
      return received != MPI_SUCCESS ? received : sent;
    }
    if (of_device) {
      if (!hpe_can_receive(recvcount, source, comm)) return std::nullopt;
    } else if (!may_bring_envelope(recvcount, recvtype, source, comm) && !may_be_set_aside(source, comm)) {
      const receive_inspection::uninspected not_inspected(may_fit_envelope(recvcount, recvtype));
      if (!may_bring_envelope(recvcount, recvtype, source, comm) && !may_be_set_aside(source, comm)) {
        const unmatched_sends::by_mpi passing(comm, dest, sendtag);
        return waits::exchange(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source,
                               recvtag, comm, status);
      }
    }
    if (may_be_set_aside(source, comm)) {
      const trace::recorded here(trace::category::mpi, function);
      MPI_Request request = handles::get().request_null;
      const int begun = ::MPI_Isend(sendbuf, sendcount, sendtype, dest, sendtag, comm, &request);
      if (begun != MPI_SUCCESS) return begun;
      const int received = ::MPI_Recv(recvbuf, recvcount, recvtype, source, recvtag, comm, status);
      const int sent = ::MPI_Wait(&request, MPI_STATUS_IGNORE);
      return received != MPI_SUCCESS ? received : sent;
    }
    const unmatched_sends::by_mpi passing(comm, dest, sendtag);
    std::optional<staged_buffer> staged;
    const void* from = sendbuf;
    if (staged_send) {
      staged.emplace(sendbuf, elements(sendcount, sendtype), host_use::read, false);
      from = staged->pointer();
    }
    return receive_now(function, {recvbuf, recvcount, recvtype, source, recvtag, comm}, status,
                       [&](const incoming::buffer_arguments& to, MPI_Status* its) {
                         return waits::exchange(from, sendcount, sendtype, dest, sendtag, to.place, to.count, to.type,
                                                source, recvtag, comm, its);
                       });
  });
}

// hpe or MPI copies the bytes to send before the receive can overwrite them. MPI sends this copy as a whole, without an
// envelope.
taken any_sendrecv_replace(void* buf, int count, MPI_Datatype type, int dest, int sendtag, int source, int recvtag,
                           MPI_Comm comm, MPI_Status* status, const char* function) {
  return guarded(comm, [&]() -> taken {
    if (dest == MPI_PROC_NULL && concerns(buf)) return ::MPI_Recv(buf, count, type, source, recvtag, comm, status);
    const unadvertised_receive::call receiving;
    const unmatched_sends::by_mpi passing(comm, dest, sendtag);
    if (asks_if_of_device(buf, count)) {
      if (!hpe_can_receive(count, source, comm)) return std::nullopt;
    } else if (!may_bring_envelope(count, type, source, comm) && !may_be_set_aside(source, comm)) {
      const receive_inspection::uninspected not_inspected(may_fit_envelope(count, type));
      if (!may_bring_envelope(count, type, source, comm) && !may_be_set_aside(source, comm))
        return HPE_REAL(Sendrecv_replace)(buf, count, type, dest, sendtag, source, recvtag, comm, status);
    }
    std::optional<staged_buffer> staged;
    if (concerns(buf)) staged.emplace(buf, elements(count, type), host_use::read, false);
    if (!may_be_set_aside(source, comm)) {
      const auto exchange = [&](const incoming::buffer_arguments& to, MPI_Status* its) {
        if (to.place == buf)
          return HPE_REAL(Sendrecv_replace)(buf, count, type, dest, sendtag, source, recvtag, comm, its);
        return waits::exchange(staged ? staged->pointer() : buf, count, type, dest, sendtag, to.place, to.count,
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
    const auto as_packed = handles::get().packed;
    if (const int failed = HPE_REAL(Isend)(packed.data(), size, as_packed, dest, sendtag, comm, &request);
        failed != MPI_SUCCESS)
      return failed;
    const int received = ::MPI_Recv(buf, count, type, source, recvtag, comm, status);
    const int sent = waits::one(&request, MPI_STATUS_IGNORE);
    return received != MPI_SUCCESS ? received : sent;
  });
}

}  // namespace hpe::interpose::mpi
