#include "interpose/mpi/messages/point_to_point.h"

#include <new>

#include "interpose/mpi/messages/incoming.h"
#include "interpose/mpi/messages/outgoing.h"
#include "runtime/core/host_access.h"

namespace hpe::interpose::mpi {

namespace {

bool is_intra(MPI_Comm comm) {
  if (comm == nullptr || comm == handles::get().comm_null) return false;
  int inter = 0;
  HPE_REAL(Comm_test_inter)(comm, &inter);
  return inter == 0;
}

// Whether an envelope fits.
bool is_looked_at(int count, MPI_Datatype type) {
  if (count <= 0 || type == nullptr || type == handles::get().datatype_null) return false;
  MPI_Count size = 0;
  HPE_REAL(Type_size_x)(type, &size);
  return size * count >= static_cast<MPI_Count>(envelope_bytes);
}

bool may_bring_envelope(int count, MPI_Datatype type, int source, MPI_Comm comm) {
  return source != MPI_PROC_NULL && is_looked_at(count, type) && is_intra(comm);
}

// Whether devices have the memory.
bool is_of_devices(const void* p) {
  if (core::host_access::of(p) == nullptr) return false;
  hpePointerInfo info;
  return hpeGetPointerInfo(p, &info) == HPE_SUCCESS &&
         (info.kind == HPE_MEMORY_DEVICE || info.kind == HPE_MEMORY_STRIPED);
}

std::shared_ptr<outgoing> large(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                                bool persistent) {
  if (core::host_access::of(buf) == nullptr || dest < 0 || !is_looked_at(count, type) || !is_intra(comm)) return nullptr;
  const job& running = *job::current();
  const layout which = elements(count, type);
  if (which.size() < running.least || which.size() != which.extent() || !is_of_devices(buf)) return nullptr;
  int members = 0;
  HPE_REAL(Comm_size)(comm, &members);
  if (dest >= members) return nullptr;
  const int rank = job::world_rank(comm, dest);
  if (rank == MPI_UNDEFINED || rank == running.rank) return nullptr;
  return std::make_shared<outgoing>(
      outgoing::arguments{moved(buf, which.begin()), which.size(), dest, rank, tag, comm}, persistent);
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

// A blocking receive: call(place, status) is MPI's.
template <class Call>
int receive_now(void* buf, int count, MPI_Datatype type, MPI_Comm comm, MPI_Status* status, Call&& call) {
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  std::shared_ptr<incoming> receive;
  if (concerns(buf)) receive = std::make_shared<incoming>(buf, elements(count, type), comm, nullptr, false);
  const int result = call(receive ? receive->place() : buf, status);
  if (result != MPI_SUCCESS) return result;
  if (!receive) {
    if (bytes_received(*status) != envelope_bytes) return result;
    receive = std::make_shared<incoming>(buf, elements(count, type), comm, nullptr, false);
  }
  if (!receive->was_envelope(*status)) return result;
  return receive->carry_out(status);
}

}  // namespace

taken large_send(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
  return guarded(comm, [&]() -> taken {
    const auto send = large(buf, count, type, dest, tag, comm, false);
    if (send == nullptr) return std::nullopt;
    return send->carry_out(MPI_STATUS_IGNORE);
  });
}

taken large_isend(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                  MPI_Request* request) {
  return guarded(comm, [&]() -> taken {
    const auto send = large(buf, count, type, dest, tag, comm, false);
    if (send == nullptr) return std::nullopt;
    return send->open(request);
  });
}

taken large_send_init(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                      MPI_Request* request) {
  return guarded(comm, [&]() -> taken {
    const auto send = large(buf, count, type, dest, tag, comm, true);
    if (send == nullptr) return std::nullopt;
    return send->open(request);
  });
}

taken any_recv(void* buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status* status) {
  return guarded(comm, [&]() -> taken {
    if (!may_bring_envelope(count, type, source, comm)) return std::nullopt;
    return receive_now(buf, count, type, comm, status, [&](void* place, MPI_Status* its) {
      return HPE_REAL(Recv)(place, count, type, source, tag, comm, its);
    });
  });
}

taken any_irecv(void* buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request* request) {
  return guarded(comm, [&]() -> taken {
    if (!may_bring_envelope(count, type, source, comm)) return std::nullopt;
    const auto post = [=](void* place, MPI_Request* its) {
      return HPE_REAL(Irecv)(place, count, type, source, tag, comm, its);
    };
    return std::make_shared<incoming>(buf, elements(count, type), comm, post, false)->open(request);
  });
}

taken any_recv_init(void* buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request* request) {
  return guarded(comm, [&]() -> taken {
    if (!may_bring_envelope(count, type, source, comm)) return std::nullopt;
    const auto post = [=](void* place, MPI_Request* its) {
      return HPE_REAL(Recv_init)(place, count, type, source, tag, comm, its);
    };
    return std::make_shared<incoming>(buf, elements(count, type), comm, post, true)->open(request);
  });
}

taken any_mrecv(void* buf, int count, MPI_Datatype type, MPI_Message* message, MPI_Status* status) {
  const MPI_Comm comm = nullptr;  // only MPI knows
  return guarded(comm, [&]() -> taken {
    if (message == nullptr || !is_looked_at(count, type)) return std::nullopt;
    return receive_now(buf, count, type, comm, status, [&](void* place, MPI_Status* its) {
      return HPE_REAL(Mrecv)(place, count, type, message, its);
    });
  });
}

taken any_imrecv(void* buf, int count, MPI_Datatype type, MPI_Message* message, MPI_Request* request) {
  const MPI_Comm comm = nullptr;
  return guarded(comm, [&]() -> taken {
    if (message == nullptr || !is_looked_at(count, type)) return std::nullopt;
    const auto post = [=](void* place, MPI_Request* its) {
      return HPE_REAL(Imrecv)(place, count, type, message, its);
    };
    return std::make_shared<incoming>(buf, elements(count, type), comm, post, false)->open(request);
  });
}

taken any_sendrecv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag, void* recvbuf,
                   int recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status* status) {
  return guarded(comm, [&]() -> taken {
    if (const auto send = large(sendbuf, sendcount, sendtype, dest, sendtag, comm, false)) {
      if (const int failed = send->launch(); failed != MPI_SUCCESS) return failed;
      const int received = ::MPI_Recv(recvbuf, recvcount, recvtype, source, recvtag, comm, status);
      const int sent = send->wait(MPI_STATUS_IGNORE);
      return received != MPI_SUCCESS ? received : sent;
    }
    if (!may_bring_envelope(recvcount, recvtype, source, comm)) return std::nullopt;
    std::optional<staged_buffer> staged;
    const void* from = sendbuf;
    if (concerns(sendbuf)) {
      staged.emplace(sendbuf, elements(sendcount, sendtype), host_use::read, false);
      from = staged->pointer();
    }
    return receive_now(recvbuf, recvcount, recvtype, comm, status, [&](void* place, MPI_Status* its) {
      return HPE_REAL(Sendrecv)(from, sendcount, sendtype, dest, sendtag, place, recvcount, recvtype, source, recvtag,
                                comm, its);
    });
  });
}

taken any_sendrecv_replace(void* buf, int count, MPI_Datatype type, int dest, int sendtag, int source, int recvtag,
                           MPI_Comm comm, MPI_Status* status) {
  return guarded(comm, [&]() -> taken {
    if (!may_bring_envelope(count, type, source, comm)) return std::nullopt;
    // What is sent must be kept from what is received.
    std::optional<staged_buffer> sent;
    if (concerns(buf)) sent.emplace(buf, elements(count, type), host_use::read, false);
    return receive_now(buf, count, type, comm, status, [&](void* place, MPI_Status* its) {
      if (!sent)
        return HPE_REAL(Sendrecv_replace)(place, count, type, dest, sendtag, source, recvtag, comm, its);
      return HPE_REAL(Sendrecv)(sent->pointer(), count, type, dest, sendtag, place, count, type, source, recvtag, comm,
                                its);
    });
  });
}

}  // namespace hpe::interpose::mpi
