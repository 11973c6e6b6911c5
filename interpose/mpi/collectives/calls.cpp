#include "interpose/mpi/collectives/calls.h"

#include <algorithm>

#include "interpose/mpi/collectives/exchange.h"
#include "interpose/mpi/groups.h"
#include "runtime/trace/recorder.h"

namespace hpe::interpose::mpi {

namespace {

constexpr std::size_t least_bytes = 4096;

// Whether a block that all ranks give with the same size is too small. An argument that MPI refuses is.
bool is_small(int count, MPI_Datatype type) {
  if (count <= 0 || is_null(type, handles::get().datatype_null)) return true;
  return static_cast<std::size_t>(measures_of(type).size) * static_cast<std::size_t>(count) < least_bytes;
}

std::byte* block(const void* buffer, MPI_Aint elements, MPI_Datatype type) {
  return moved(buffer, elements * measures_of(type).extent);
}

// The memory of several buffers. A rank whose arguments hpe cannot interpret leaves the call to MPI in all ranks.
template <class Look>
near_group::memory found_by(Look&& look) {
  try {
    return look();
  } catch (const left_to_mpi&) {
    return near_group::memory::other;
  }
}

near_group::memory memory_of(const void* sendbuf, const layout& sent, const void* recvbuf, const layout& received) {
  const auto there = near_group::memory_of(recvbuf, received);
  return sendbuf == MPI_IN_PLACE ? there : std::max(there, near_group::memory_of(sendbuf, sent));
}

void require_root(MPI_Comm comm, int root) {
  if (root < 0 || root >= members(comm)) throw left_to_mpi{};
}

// Makes the call by messages(exchange) if the ranks agree; look() returns the memory that this rank uses.
template <class Look, class Messages>
taken carry(MPI_Comm comm, const char* function, Look&& look, Messages&& messages) {
  return guarded(comm, [&]() -> taken {
    near_group* const ranks = near_group::of(comm);
    if (ranks == nullptr || !ranks->votes() || !ranks->agree(found_by(look), near_group::needed::one))
      return std::nullopt;
    const trace::recorded here(trace::category::mpi, function);
    exchange call(*ranks);
    messages(call);
    return call.finish(comm);
  });
}

// Visits the other ranks, each rank another one first, and this rank last.
template <class Visit>
void for_each_rank(const exchange& call, Visit visit) {
  for (int i = 1; i <= call.size(); ++i) visit((call.rank() + i) % call.size());
}

}  // namespace

taken direct_alltoall(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                      MPI_Datatype recvtype, MPI_Comm comm, const char* function) {
  if (sendbuf == MPI_IN_PLACE || is_small(recvcount, recvtype)) return std::nullopt;
  const auto look = [&] {
    const int n = members(comm);
    return memory_of(sendbuf, each(n, sendcount, sendtype), recvbuf, each(n, recvcount, recvtype));
  };
  return carry(comm, function, look, [&](exchange& call) {
    for_each_rank(
        call, [&](int r) { call.receive(block(recvbuf, MPI_Aint{r} * recvcount, recvtype), recvcount, recvtype, r); });
    for_each_rank(call,
                  [&](int r) { call.send(block(sendbuf, MPI_Aint{r} * sendcount, sendtype), sendcount, sendtype, r); });
  });
}

taken direct_alltoallv(const void* sendbuf, const int* sendcounts, const int* sdispls, MPI_Datatype sendtype,
                       void* recvbuf, const int* recvcounts, const int* rdispls, MPI_Datatype recvtype, MPI_Comm comm,
                       const char* function) {
  if (sendbuf == MPI_IN_PLACE) return std::nullopt;
  const auto look = [&] {
    const int n = members(comm);
    return memory_of(sendbuf, pieces(n, sendcounts, sdispls, sendtype), recvbuf,
                     pieces(n, recvcounts, rdispls, recvtype));
  };
  return carry(comm, function, look, [&](exchange& call) {
    for_each_rank(call, [&](int r) { call.receive(block(recvbuf, rdispls[r], recvtype), recvcounts[r], recvtype, r); });
    for_each_rank(call, [&](int r) { call.send(block(sendbuf, sdispls[r], sendtype), sendcounts[r], sendtype, r); });
  });
}

taken direct_allgather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                       MPI_Datatype recvtype, MPI_Comm comm, const char* function) {
  if (is_small(recvcount, recvtype)) return std::nullopt;
  const auto look = [&] {
    return memory_of(sendbuf, sendbuf == MPI_IN_PLACE ? layout() : elements(sendcount, sendtype), recvbuf,
                     each(members(comm), recvcount, recvtype));
  };
  return carry(comm, function, look, [&](exchange& call) {
    const auto place = [&](int r) { return block(recvbuf, MPI_Aint{r} * recvcount, recvtype); };
    const bool in_place = sendbuf == MPI_IN_PLACE;
    for_each_rank(call, [&](int r) {
      if (!in_place || r != call.rank()) call.receive(place(r), recvcount, recvtype, r);
    });
    for_each_rank(call, [&](int r) {
      if (!in_place) call.send(sendbuf, sendcount, sendtype, r);
      if (in_place && r != call.rank()) call.send(place(call.rank()), recvcount, recvtype, r);
    });
  });
}

taken direct_allgatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, const int* recvcounts,
                        const int* displs, MPI_Datatype recvtype, MPI_Comm comm, const char* function) {
  const auto look = [&] {
    return memory_of(sendbuf, sendbuf == MPI_IN_PLACE ? layout() : elements(sendcount, sendtype), recvbuf,
                     pieces(members(comm), recvcounts, displs, recvtype));
  };
  return carry(comm, function, look, [&](exchange& call) {
    const auto place = [&](int r) { return block(recvbuf, displs[r], recvtype); };
    const bool in_place = sendbuf == MPI_IN_PLACE;
    for_each_rank(call, [&](int r) {
      if (!in_place || r != call.rank()) call.receive(place(r), recvcounts[r], recvtype, r);
    });
    for_each_rank(call, [&](int r) {
      if (!in_place) call.send(sendbuf, sendcount, sendtype, r);
      if (in_place && r != call.rank()) call.send(place(call.rank()), recvcounts[call.rank()], recvtype, r);
    });
  });
}

taken direct_bcast(void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm, const char* function) {
  if (is_small(count, datatype)) return std::nullopt;
  const auto look = [&] {
    require_root(comm, root);
    return near_group::memory_of(buffer, elements(count, datatype));
  };
  return carry(comm, function, look, [&](exchange& call) {
    if (call.rank() != root) return call.receive(buffer, count, datatype, root);
    for_each_rank(call, [&](int r) {
      if (r != root) call.send(buffer, count, datatype, r);
    });
  });
}

taken direct_gather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                    MPI_Datatype recvtype, int root, MPI_Comm comm, const char* function) {
  if (!is_intra(comm)) return std::nullopt;
  const bool here = is_root(comm, root);
  if (here ? is_small(recvcount, recvtype) : is_small(sendcount, sendtype)) return std::nullopt;
  const bool in_place = here && sendbuf == MPI_IN_PLACE;
  const auto look = [&] {
    require_root(comm, root);
    const layout received = here ? each(members(comm), recvcount, recvtype) : layout();
    return memory_of(sendbuf, in_place ? layout() : elements(sendcount, sendtype), recvbuf, received);
  };
  return carry(comm, function, look, [&](exchange& call) {
    if (here)
      for_each_rank(call, [&](int r) {
        if (!in_place || r != root)
          call.receive(block(recvbuf, MPI_Aint{r} * recvcount, recvtype), recvcount, recvtype, r);
      });
    if (!in_place) call.send(sendbuf, sendcount, sendtype, root);
  });
}

taken direct_scatter(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                     MPI_Datatype recvtype, int root, MPI_Comm comm, const char* function) {
  if (!is_intra(comm)) return std::nullopt;
  const bool here = is_root(comm, root);
  if (here ? is_small(sendcount, sendtype) : is_small(recvcount, recvtype)) return std::nullopt;
  const bool in_place = here && recvbuf == MPI_IN_PLACE;
  const auto look = [&] {
    require_root(comm, root);
    const layout sent = here ? each(members(comm), sendcount, sendtype) : layout();
    const auto from = near_group::memory_of(sendbuf, sent);
    return in_place ? from : std::max(from, near_group::memory_of(recvbuf, elements(recvcount, recvtype)));
  };
  return carry(comm, function, look, [&](exchange& call) {
    if (!in_place) call.receive(recvbuf, recvcount, recvtype, root);
    if (here)
      for_each_rank(call, [&](int r) {
        if (!in_place || r != root)
          call.send(block(sendbuf, MPI_Aint{r} * sendcount, sendtype), sendcount, sendtype, r);
      });
  });
}

}  // namespace hpe::interpose::mpi
