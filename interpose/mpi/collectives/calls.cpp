#include "interpose/mpi/collectives/calls.h"

#include <algorithm>

#include "interpose/mpi/collectives/background_call.h"
#include "interpose/mpi/collectives/collective_plan.h"
#include "interpose/mpi/groups.h"
#include "runtime/trace/recorder.h"

namespace hpe::interpose::mpi {

namespace {

// Whether a block has fewer than 4096 bytes, so that MPI's own function is faster than messages between devices.
bool is_small(int count, MPI_Datatype type) { return is_smaller(4096, count, type); }

// Whether all blocks of the ranks of an intracommunicator are small.
bool are_small(const int* counts, MPI_Datatype type, MPI_Comm comm) {
  return counts == nullptr || is_small(*std::max_element(counts, counts + members(comm)), type);
}

void require_root(MPI_Comm comm, int root) {
  if (root < 0 || root >= members(comm)) throw left_to_mpi{};
}

// Carries out a blocking collective operation by an exchange of messages if all ranks agree to do so. make() returns
// the plan of this rank. Returns nullopt in all ranks if they do not agree, or if hpe cannot interpret the arguments of
// one rank.
template <class Make>
taken make_now(MPI_Comm comm, const char* function, Make&& make) {
  near_group* const ranks = near_group::of(comm);
  if (ranks == nullptr || !ranks->votes()) return std::nullopt;
  collective_plan mine;
  auto used = near_group::memory::other;
  try {
    mine = make();
    used = mine.memory(ranks->size());
  } catch (const left_to_mpi&) {
  }
  if (!ranks->agree(used, near_group::needed::one)) return std::nullopt;
  const trace::recorded here(trace::category::mpi, function);
  exchange call(ranks->now());
  mine.post(call);
  return call.finish(comm);
}

// Begins a non-blocking collective operation that exchanges messages, for any kind of memory. The call of memory() only
// checks the arguments, and throws left_to_mpi if they are invalid.
template <class Make>
taken begin(MPI_Comm comm, MPI_Request* request, Make&& make) {
  near_group* const ranks = near_group::of_background(comm);
  if (ranks == nullptr) return std::nullopt;
  collective_plan mine = make();
  static_cast<void>(mine.memory(ranks->size()));
  const auto who = ranks->next();
  // If the channel is ready, the messages begin before the program can free the datatypes.
  if (!who.channel->ready()) mine.keep_types();
  return begin_in_background(who, comm, request, {[mine](exchange& call) {
                               mine.post(call);
                               return true;
                             }});
}

template <class Make>
taken carry(MPI_Comm comm, const call_form& form, Make&& make) {
  return guarded(comm, [&] {
    return form.request != nullptr ? begin(comm, form.request, make) : make_now(comm, form.function, make);
  });
}

// Returns this rank's plan for a call in which all ranks send a block to the root.
collective_plan gathering(const void* sendbuf, int sendcount, MPI_Datatype sendtype, const blocks& received, int root,
                          MPI_Comm comm) {
  require_root(comm, root);
  const bool here = is_root(comm, root);
  if (here && sendbuf == MPI_IN_PLACE) return {{}, received.without(root)};
  return {blocks::shared(sendbuf, sendcount, sendtype).only_for(root), here ? received : blocks()};
}

// Returns this rank's plan for a call in which the root sends a block to each rank.
collective_plan scattering(const blocks& sent, void* recvbuf, int recvcount, MPI_Datatype recvtype, int root,
                           MPI_Comm comm) {
  require_root(comm, root);
  const bool here = is_root(comm, root);
  if (here && recvbuf == MPI_IN_PLACE) return {sent.without(root), {}};
  return {here ? sent : blocks(), blocks::shared(recvbuf, recvcount, recvtype).only_for(root)};
}

// Returns this rank's plan for a call in which each rank sends one block to all ranks. With MPI_IN_PLACE, this block is
// in the receive buffer.
collective_plan gathering_in_all(const void* sendbuf, int sendcount, MPI_Datatype sendtype, const blocks& received,
                                 MPI_Comm comm) {
  if (sendbuf != MPI_IN_PLACE) return {blocks::shared(sendbuf, sendcount, sendtype), received};
  const int rank = rank_in(comm);
  return {received.block_of(rank).without(rank), received.without(rank)};
}

}  // namespace

taken direct_alltoall(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                      MPI_Datatype recvtype, MPI_Comm comm, call_form form) {
  if (sendbuf == MPI_IN_PLACE || is_small(recvcount, recvtype)) return std::nullopt;
  return carry(comm, form, [&] {
    return collective_plan{blocks::equal(sendbuf, sendcount, sendtype), blocks::equal(recvbuf, recvcount, recvtype)};
  });
}

taken direct_alltoallv(const void* sendbuf, const int* sendcounts, const int* sdispls, MPI_Datatype sendtype,
                       void* recvbuf, const int* recvcounts, const int* rdispls, MPI_Datatype recvtype, MPI_Comm comm,
                       call_form form) {
  if (sendbuf == MPI_IN_PLACE) return std::nullopt;
  return carry(comm, form, [&] {
    return collective_plan{blocks::listed(sendbuf, sendcounts, sdispls, sendtype),
                           blocks::listed(recvbuf, recvcounts, rdispls, recvtype)};
  });
}

taken direct_allgather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                       MPI_Datatype recvtype, MPI_Comm comm, call_form form) {
  if (is_small(recvcount, recvtype)) return std::nullopt;
  return carry(comm, form, [&] {
    return gathering_in_all(sendbuf, sendcount, sendtype, blocks::equal(recvbuf, recvcount, recvtype), comm);
  });
}

taken direct_allgatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, const int* recvcounts,
                        const int* displs, MPI_Datatype recvtype, MPI_Comm comm, call_form form) {
  if (!is_intra(comm) || are_small(recvcounts, recvtype, comm)) return std::nullopt;
  return carry(comm, form, [&] {
    return gathering_in_all(sendbuf, sendcount, sendtype, blocks::listed(recvbuf, recvcounts, displs, recvtype), comm);
  });
}

taken direct_bcast(void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm, call_form form) {
  if (is_small(count, datatype)) return std::nullopt;
  return carry(comm, form, [&]() -> collective_plan {
    require_root(comm, root);
    const auto all = blocks::shared(buffer, count, datatype);
    if (is_root(comm, root)) return {all.without(root), {}};
    return {{}, all.only_for(root)};
  });
}

taken direct_gather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                    MPI_Datatype recvtype, int root, MPI_Comm comm, call_form form) {
  if (!is_intra(comm)) return std::nullopt;
  if (is_root(comm, root) ? is_small(recvcount, recvtype) : is_small(sendcount, sendtype)) return std::nullopt;
  return carry(comm, form, [&] {
    return gathering(sendbuf, sendcount, sendtype, blocks::equal(recvbuf, recvcount, recvtype), root, comm);
  });
}

taken direct_gatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, const int* recvcounts,
                     const int* displs, MPI_Datatype recvtype, int root, MPI_Comm comm, call_form form) {
  return carry(comm, form, [&] {
    return gathering(sendbuf, sendcount, sendtype, blocks::listed(recvbuf, recvcounts, displs, recvtype), root, comm);
  });
}

taken direct_scatter(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                     MPI_Datatype recvtype, int root, MPI_Comm comm, call_form form) {
  if (!is_intra(comm)) return std::nullopt;
  if (is_root(comm, root) ? is_small(sendcount, sendtype) : is_small(recvcount, recvtype)) return std::nullopt;
  return carry(comm, form, [&] {
    return scattering(blocks::equal(sendbuf, sendcount, sendtype), recvbuf, recvcount, recvtype, root, comm);
  });
}

taken direct_scatterv(const void* sendbuf, const int* sendcounts, const int* displs, MPI_Datatype sendtype,
                      void* recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, call_form form) {
  return carry(comm, form, [&] {
    return scattering(blocks::listed(sendbuf, sendcounts, displs, sendtype), recvbuf, recvcount, recvtype, root, comm);
  });
}

}  // namespace hpe::interpose::mpi
