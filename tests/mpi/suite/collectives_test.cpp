// Tests every collective function, blocking and non-blocking, in intracommunicators, with MPI_IN_PLACE, and in
// intercommunicators.
#include <numeric>

#include "tests/mpi/ranks.h"

namespace {

// The number of words of a block: enough that hpe copies blocks in memory of the CUDA driver from device to device.
constexpr int n = 1100;
const MPI_Comm world = MPI_COMM_WORLD;
const MPI_Datatype type = MPI_UINT32_T;

// Runs the blocking call, and then the non-blocking call with a wait, as same_as_on_host() does.
template <class Blocking, class NonBlocking>
void both_ways(std::size_t send, std::size_t receive, Blocking&& blocking, NonBlocking&& non_blocking) {
  same_as_on_host(send, receive, blocking);
  same_as_on_host(send, receive, [&](buffers b) {
    MPI_Request request = MPI_REQUEST_NULL;
    non_blocking(b, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  });
}

// For each rank, a count and a displacement in words, and the displacement in bytes. The displacements leave gaps.
struct parts {
  std::vector<int> counts;
  std::vector<int> displacements;
  std::vector<int> byte_displacements;
  std::vector<MPI_Datatype> types;

  explicit parts(int size, const std::function<int(int)>& count) {
    int at = 3;
    for (int i = 0; i < size; ++i) {
      counts.push_back(count(i));
      displacements.push_back(at);
      byte_displacements.push_back(at * int(sizeof(word)));
      types.push_back(type);
      at += count(i) + 5;
    }
  }
  [[nodiscard]] std::size_t words() const { return std::size_t(displacements.back()) + std::size_t(counts.back()) + 3; }
};

TEST(collectives, Bcast) {
  for (int root = 0; root < ranks(); ++root)
    both_ways(
        0, n, [&](buffers b) { MPI_Bcast(b.receive + 1, n - 2, type, root, world); },
        [&](buffers b, MPI_Request* r) { MPI_Ibcast(b.receive + 1, n - 2, type, root, world, r); });
}

TEST(collectives, Gather) {
  const auto all = std::size_t{n} * std::size_t(ranks());
  for (int root = 0; root < ranks(); ++root) {
    both_ways(
        n, all, [&](buffers b) { MPI_Gather(b.send, n, type, b.receive, n, type, root, world); },
        [&](buffers b, MPI_Request* r) { MPI_Igather(b.send, n, type, b.receive, n, type, root, world, r); });
    const auto in_place = [&](buffers b) { return rank() == root ? MPI_IN_PLACE : static_cast<void*>(b.send); };
    both_ways(
        n, all, [&](buffers b) { MPI_Gather(in_place(b), n, type, b.receive, n, type, root, world); },
        [&](buffers b, MPI_Request* r) { MPI_Igather(in_place(b), n, type, b.receive, n, type, root, world, r); });
  }
}

TEST(collectives, Gatherv) {
  const parts p(ranks(), [](int i) { return 10 * i + 7; });
  const int mine = p.counts[rank()];
  const int root = ranks() - 1;
  both_ways(
      n, p.words(),
      [&](buffers b) {
        MPI_Gatherv(b.send, mine, type, b.receive, p.counts.data(), p.displacements.data(), type, root, world);
      },
      [&](buffers b, MPI_Request* r) {
        MPI_Igatherv(b.send, mine, type, b.receive, p.counts.data(), p.displacements.data(), type, root, world, r);
      });
}

TEST(collectives, Scatter) {
  const auto all = std::size_t{n} * std::size_t(ranks());
  for (int root = 0; root < ranks(); ++root) {
    both_ways(
        all, n, [&](buffers b) { MPI_Scatter(b.send, n, type, b.receive, n, type, root, world); },
        [&](buffers b, MPI_Request* r) { MPI_Iscatter(b.send, n, type, b.receive, n, type, root, world, r); });
    const auto in_place = [&](buffers b) { return rank() == root ? MPI_IN_PLACE : static_cast<void*>(b.receive); };
    same_as_on_host(all, n, [&](buffers b) { MPI_Scatter(b.send, n, type, in_place(b), n, type, root, world); });
  }
}

TEST(collectives, Scatterv) {
  const parts p(ranks(), [](int i) { return 20 * i + 1; });
  const int mine = p.counts[rank()];
  both_ways(
      p.words(), n,
      [&](buffers b) {
        MPI_Scatterv(b.send, p.counts.data(), p.displacements.data(), type, b.receive, mine, type, 0, world);
      },
      [&](buffers b, MPI_Request* r) {
        MPI_Iscatterv(b.send, p.counts.data(), p.displacements.data(), type, b.receive, mine, type, 0, world, r);
      });
}

TEST(collectives, Allgather) {
  const auto all = std::size_t{n} * std::size_t(ranks());
  both_ways(
      n, all, [&](buffers b) { MPI_Allgather(b.send, n, type, b.receive, n, type, world); },
      [&](buffers b, MPI_Request* r) { MPI_Iallgather(b.send, n, type, b.receive, n, type, world, r); });
  both_ways(
      n, all, [&](buffers b) { MPI_Allgather(MPI_IN_PLACE, 0, type, b.receive, n, type, world); },
      [&](buffers b, MPI_Request* r) { MPI_Iallgather(MPI_IN_PLACE, 0, type, b.receive, n, type, world, r); });
}

TEST(collectives, Allgatherv) {
  const parts p(ranks(), [](int i) { return 5 * i; });
  const int mine = p.counts[rank()];
  both_ways(
      n, p.words(),
      [&](buffers b) {
        MPI_Allgatherv(b.send, mine, type, b.receive, p.counts.data(), p.displacements.data(), type, world);
      },
      [&](buffers b, MPI_Request* r) {
        MPI_Iallgatherv(b.send, mine, type, b.receive, p.counts.data(), p.displacements.data(), type, world, r);
      });
}

TEST(collectives, Alltoall) {
  const auto all = std::size_t{n} * std::size_t(ranks());
  both_ways(
      all, all, [&](buffers b) { MPI_Alltoall(b.send, n, type, b.receive, n, type, world); },
      [&](buffers b, MPI_Request* r) { MPI_Ialltoall(b.send, n, type, b.receive, n, type, world, r); });
  same_as_on_host(all, all, [&](buffers b) { MPI_Alltoall(MPI_IN_PLACE, 0, type, b.receive, n, type, world); });
}

TEST(collectives, AlltoallvAndAlltoallw) {
  // Rank i sends i + j words to rank j.
  const parts p(ranks(), [](int j) { return rank() + j; });
  const int* const c = p.counts.data();
  const int* const d = p.displacements.data();
  const int* const bytes = p.byte_displacements.data();
  const MPI_Datatype* const t = p.types.data();
  both_ways(
      p.words(), p.words(), [&](buffers b) { MPI_Alltoallv(b.send, c, d, type, b.receive, c, d, type, world); },
      [&](buffers b, MPI_Request* r) { MPI_Ialltoallv(b.send, c, d, type, b.receive, c, d, type, world, r); });
  both_ways(
      p.words(), p.words(), [&](buffers b) { MPI_Alltoallw(b.send, c, bytes, t, b.receive, c, bytes, t, world); },
      [&](buffers b, MPI_Request* r) { MPI_Ialltoallw(b.send, c, bytes, t, b.receive, c, bytes, t, world, r); });
}

TEST(collectives, Reduce) {
  for (int root = 0; root < ranks(); ++root) {
    both_ways(
        n, n, [&](buffers b) { MPI_Reduce(b.send, b.receive, n - 1, type, MPI_SUM, root, world); },
        [&](buffers b, MPI_Request* r) { MPI_Ireduce(b.send, b.receive, n - 1, type, MPI_SUM, root, world, r); });
    if (is_mpich && root != 0) continue;  // MPICH 4.0 reads from MPI_IN_PLACE if the root is not rank 0
    const auto in_place = [&](buffers b) { return rank() == root ? MPI_IN_PLACE : static_cast<void*>(b.send); };
    same_as_on_host(n, n, [&](buffers b) { MPI_Reduce(in_place(b), b.receive, n, type, MPI_MAX, root, world); });
  }
}

TEST(collectives, Allreduce) {
  both_ways(
      n, n, [&](buffers b) { MPI_Allreduce(b.send, b.receive, n, type, MPI_SUM, world); },
      [&](buffers b, MPI_Request* r) { MPI_Iallreduce(b.send, b.receive, n, type, MPI_SUM, world, r); });
  both_ways(
      n, n, [&](buffers b) { MPI_Allreduce(MPI_IN_PLACE, b.receive, n, type, MPI_MIN, world); },
      [&](buffers b, MPI_Request* r) { MPI_Iallreduce(MPI_IN_PLACE, b.receive, n, type, MPI_MIN, world, r); });
}

// Reductions of so many numbers that hpe combines them on devices if they are in memory of the CUDA driver: each rank
// combines a part of the numbers.
TEST(collectives, LargeReductions) {
  constexpr int many = 20001;
  // hpe's kernels do not support the last operation.
  const std::array ops{MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_BXOR};
  const std::array types{MPI_UINT32_T, MPI_INT};
  for (const MPI_Op op : ops)
    for (const MPI_Datatype of : types) {
      same_as_on_host(many, many, [&](buffers b) { MPI_Allreduce(b.send, b.receive, many, of, op, world); });
      same_as_on_host(many, many, [&](buffers b) { MPI_Allreduce(MPI_IN_PLACE, b.receive, many, of, op, world); });
      const int root = ranks() - 1;
      same_as_on_host(many, many, [&](buffers b) { MPI_Reduce(b.send, b.receive, many, of, op, root, world); });
      if (is_mpich) continue;  // MPICH reads from MPI_IN_PLACE, as in the test of MPI_Reduce
      const auto in_place = [&](buffers b) { return rank() == root ? MPI_IN_PLACE : static_cast<void*>(b.send); };
      same_as_on_host(many, many, [&](buffers b) { MPI_Reduce(in_place(b), b.receive, many, of, op, root, world); });
    }
  both_ways(
      many, many, [&](buffers b) { MPI_Reduce(b.send, b.receive, many, type, MPI_SUM, 0, world); },
      [&](buffers b, MPI_Request* r) { MPI_Ireduce(b.send, b.receive, many, type, MPI_SUM, 0, world, r); });
  both_ways(
      many, many, [&](buffers b) { MPI_Allreduce(MPI_IN_PLACE, b.receive, many, type, MPI_MAX, world); },
      [&](buffers b, MPI_Request* r) { MPI_Iallreduce(MPI_IN_PLACE, b.receive, many, type, MPI_MAX, world, r); });
  for (const MPI_Datatype of : {MPI_UINT64_T, MPI_INT64_T})
    for (const MPI_Op op : ops)
      same_as_on_host(many * 2, many * 2, [&](buffers b) { MPI_Allreduce(b.send, b.receive, many, of, op, world); });
}

TEST(collectives, LargeReduceScatters) {
  std::vector<int> counts;
  for (int i = 0; i < ranks(); ++i) counts.push_back(i == 1 ? 0 : 9000 + 37 * i);
  const auto all = std::size_t(std::accumulate(counts.begin(), counts.end(), 0));
  both_ways(
      all, counts[rank()],
      [&](buffers b) { MPI_Reduce_scatter(b.send, b.receive, counts.data(), type, MPI_SUM, world); },
      [&](buffers b, MPI_Request* r) {
        MPI_Ireduce_scatter(b.send, b.receive, counts.data(), type, MPI_SUM, world, r);
      });
  constexpr int each = 9001;
  both_ways(
      std::size_t{each} * std::size_t(ranks()), each,
      [&](buffers b) { MPI_Reduce_scatter_block(b.send, b.receive, each, type, MPI_MAX, world); },
      [&](buffers b, MPI_Request* r) { MPI_Ireduce_scatter_block(b.send, b.receive, each, type, MPI_MAX, world, r); });
  same_as_on_host(each, std::size_t{each} * std::size_t(ranks()), [&](buffers b) {
    MPI_Reduce_scatter_block(MPI_IN_PLACE, b.receive, each, type, MPI_SUM, world);
    std::copy(b.receive, b.receive + each, b.send);
    std::fill_n(b.receive, std::size_t{each} * std::size_t(ranks()), word{7});  // only the first words are defined
  });
}

TEST(collectives, SomeRanksReduceAndScatterInPlace) {
  std::vector<int> counts;
  for (int i = 0; i < ranks(); ++i) counts.push_back(9000 + 37 * i);
  const auto all = std::size_t(std::accumulate(counts.begin(), counts.end(), 0));
  const auto partly_in_place = [&](const buffers& b, const auto& call) {
    std::copy(b.send, b.send + all, b.receive);
    call(rank() == 0 ? MPI_IN_PLACE : static_cast<const void*>(b.send), b.receive);
    std::fill(b.receive + counts[std::size_t(rank())], b.receive + all, word{7});  // only the words before are defined
  };
  both_ways(
      all, all,
      [&](buffers b) {
        partly_in_place(b, [&](const void* send, word* receive) {
          MPI_Reduce_scatter(send, receive, counts.data(), type, MPI_SUM, world);
        });
      },
      [&](buffers b, MPI_Request* r) {
        partly_in_place(b, [&](const void* send, word* receive) {
          MPI_Ireduce_scatter(send, receive, counts.data(), type, MPI_SUM, world, r);
          MPI_Wait(r, MPI_STATUS_IGNORE);
        });
      });
}

// The ranks of one reduction use different kinds of memory.
TEST(collectives, AReductionOfMixedMemory) {
  constexpr std::size_t many = 20001;
  const auto numbers = random_bytes(many);
  auto expected = random_bytes(many);
  const device_bytes on_device(numbers, owner::device);
  const device_bytes result(random_bytes(many), owner::device);
  auto on_host = numbers;
  auto result_on_host = expected;
  const bool host = rank() == 0;
  MPI_Allreduce(on_host.data(), expected.data(), many, type, MPI_SUM, world);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(host ? on_host.data() : on_device.data(), host ? result_on_host.data() : result.data(), many, type,
                 MPI_SUM, world, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT_TRUE(equal(host ? result_on_host : result.content(), expected));
}

// The first non-blocking call on a communicator must not wait for other ranks. The test frees the datatype and the
// communicator while calls are in progress, and completes the calls in another order than it has begun them.
TEST(collectives, NonBlockingCallsOverlap) {
  const auto all = std::size_t{n} * std::size_t(ranks());
  for (const owner who : {owner::device, owner::host}) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(world, &comm);
    auto send = random_bytes(all);
    const auto before = random_bytes(3 * all);
    auto received = before;
    const device_bytes from(send, who);
    const device_bytes to(before, who);
    const auto calls = [&](std::byte* out, std::byte* in) {
      MPI_Datatype spaced = MPI_DATATYPE_NULL;
      MPI_Type_vector(n / 2, 1, 2, type, &spaced);
      MPI_Type_commit(&spaced);
      std::array<MPI_Request, 3> requests{};
      const std::size_t part = all * sizeof(word);
      // Rank 0 sends the token after it has begun the broadcast; rank 1 begins the broadcast only after it has received
      // the token. So MPI_Ibcast must not wait for rank 1.
      int token = 0;
      if (rank() == 1) MPI_Recv(&token, 1, MPI_INT, 0, 3, comm, MPI_STATUS_IGNORE);
      MPI_Ibcast(in, 2, spaced, 0, comm, &requests[0]);
      if (rank() == 0) MPI_Send(&token, 1, MPI_INT, 1, 3, comm);
      MPI_Type_free(&spaced);
      MPI_Ialltoall(out, n, type, in + part, n, type, comm, &requests[1]);
      MPI_Iallgather(out, n, type, in + 2 * part, n, type, comm, &requests[2]);
      for (int i = 2; i >= 1; --i) MPI_Wait(&requests[std::size_t(i)], MPI_STATUS_IGNORE);
      return requests[0];
    };
    MPI_Request last = calls(from.data(), to.data());
    MPI_Comm of_host = MPI_COMM_NULL;
    MPI_Comm_dup(world, &of_host);
    MPI_Comm_free(&comm);
    MPI_Wait(&last, MPI_STATUS_IGNORE);
    comm = of_host;
    last = calls(send.data(), received.data());
    MPI_Wait(&last, MPI_STATUS_IGNORE);
    MPI_Comm_free(&comm);
    EXPECT_TRUE(equal(to.content(), received));
  }
}

void weighted(void* in, void* inout, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i)
    static_cast<word*>(inout)[i] = static_cast<word*>(in)[i] + 2 * static_cast<word*>(inout)[i];
}

TEST(collectives, AnOperationOfTheProgramsOwn) {
  MPI_Op op = MPI_OP_NULL;
  MPI_Op_create(weighted, 0, &op);
  same_as_on_host(n, n, [&](buffers b) { MPI_Allreduce(b.send, b.receive, n, type, op, world); });
  same_as_on_host(n, n, [&](buffers b) { MPI_Reduce_local(b.send, b.receive, n, type, op); });
  MPI_Op_free(&op);
}

TEST(collectives, ScanAndExscan) {
  both_ways(
      n, n, [&](buffers b) { MPI_Scan(b.send, b.receive, n, type, MPI_SUM, world); },
      [&](buffers b, MPI_Request* r) { MPI_Iscan(b.send, b.receive, n, type, MPI_SUM, world, r); });
  both_ways(
      n, n, [&](buffers b) { MPI_Exscan(b.send, b.receive, n, type, MPI_SUM, world); },
      [&](buffers b, MPI_Request* r) { MPI_Iexscan(b.send, b.receive, n, type, MPI_SUM, world, r); });
  same_as_on_host(n, n, [&](buffers b) { MPI_Scan(MPI_IN_PLACE, b.receive, n, type, MPI_SUM, world); });
}

TEST(collectives, ReduceScatter) {
  std::vector<int> counts;
  for (int i = 0; i < ranks(); ++i) counts.push_back(10 + 3 * i);
  const auto all = std::size_t(std::accumulate(counts.begin(), counts.end(), 0));
  both_ways(
      all, n, [&](buffers b) { MPI_Reduce_scatter(b.send, b.receive, counts.data(), type, MPI_SUM, world); },
      [&](buffers b, MPI_Request* r) {
        MPI_Ireduce_scatter(b.send, b.receive, counts.data(), type, MPI_SUM, world, r);
      });
  both_ways(
      std::size_t{n} * std::size_t(ranks()), n,
      [&](buffers b) { MPI_Reduce_scatter_block(b.send, b.receive, n, type, MPI_SUM, world); },
      [&](buffers b, MPI_Request* r) { MPI_Ireduce_scatter_block(b.send, b.receive, n, type, MPI_SUM, world, r); });
  // After a call with MPI_IN_PLACE, only the first words of the buffer are defined.
  const int mine = counts[rank()];
  same_as_on_host(mine, all, [&](buffers b) {
    std::vector<word> copy(b.receive, b.receive + all);
    MPI_Reduce_scatter(MPI_IN_PLACE, b.receive, counts.data(), type, MPI_SUM, world);
    std::copy(b.receive, b.receive + mine, b.send);
    std::copy(copy.begin(), copy.end(), b.receive);
  });
}

TEST(collectives, BetweenTwoGroups) {
  const int color = rank() % 2;
  MPI_Comm group = MPI_COMM_NULL;
  MPI_Comm inter = MPI_COMM_NULL;
  MPI_Comm_split(world, color, rank(), &group);
  MPI_Intercomm_create(group, 0, world, 1 - color, 9, &inter);
  int others = 0;
  int my_rank = 0;
  MPI_Comm_remote_size(inter, &others);
  MPI_Comm_rank(group, &my_rank);
  // Rank 0 of the group with color 0 is the root.
  int root = 0;
  if (color == 0) root = my_rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
  const auto all = std::size_t{n} * std::size_t(others);

  same_as_on_host(0, n, [&](buffers b) { MPI_Bcast(b.receive, n, type, root, inter); });
  same_as_on_host(n, all, [&](buffers b) { MPI_Gather(b.send, n, type, b.receive, n, type, root, inter); });
  same_as_on_host(all, n, [&](buffers b) { MPI_Scatter(b.send, n, type, b.receive, n, type, root, inter); });
  same_as_on_host(n, n, [&](buffers b) { MPI_Reduce(b.send, b.receive, n, type, MPI_SUM, root, inter); });
  same_as_on_host(n, n, [&](buffers b) { MPI_Allreduce(b.send, b.receive, n, type, MPI_SUM, inter); });
  same_as_on_host(n, all, [&](buffers b) { MPI_Allgather(b.send, n, type, b.receive, n, type, inter); });
  same_as_on_host(all, all, [&](buffers b) { MPI_Alltoall(b.send, n, type, b.receive, n, type, inter); });
  MPI_Comm_free(&inter);
  MPI_Comm_free(&group);
}

TEST(collectives, StridedTypes) {
  const datatype every_third(strided(n / 3));
  same_as_on_host(n, n, [&](buffers b) { MPI_Bcast(b.receive, 1, every_third, 0, world); });
  same_as_on_host(n / 3, std::size_t{n} * std::size_t(ranks()), [&](buffers b) {
    MPI_Datatype spaced = MPI_DATATYPE_NULL;
    MPI_Type_create_resized(every_third, 0, n * int(sizeof(word)), &spaced);
    const datatype resized(spaced);
    MPI_Allgather(b.send, n / 3, type, b.receive, 1, resized, world);
  });
}

// ---- neighbours ------------------------------------------------------------------------------------------------

void exchange_with_neighbours(MPI_Comm comm, int in, int out) {
  const auto from_all = std::size_t{n} * std::size_t(in) + 1;
  const auto to_all = std::size_t{n} * std::size_t(out) + 1;
  both_ways(
      n, from_all, [&](buffers b) { MPI_Neighbor_allgather(b.send, n, type, b.receive, n, type, comm); },
      [&](buffers b, MPI_Request* r) { MPI_Ineighbor_allgather(b.send, n, type, b.receive, n, type, comm, r); });
  both_ways(
      to_all, from_all, [&](buffers b) { MPI_Neighbor_alltoall(b.send, n, type, b.receive, n, type, comm); },
      [&](buffers b, MPI_Request* r) { MPI_Ineighbor_alltoall(b.send, n, type, b.receive, n, type, comm, r); });

  if (in == 0 || out == 0) return;
  const parts from(in, [](int) { return n; });
  const parts to(out, [](int) { return n; });
  const std::vector<MPI_Aint> from_bytes(from.byte_displacements.begin(), from.byte_displacements.end());
  const std::vector<MPI_Aint> to_bytes(to.byte_displacements.begin(), to.byte_displacements.end());
  const int* const fc = from.counts.data();
  const int* const fd = from.displacements.data();
  const int* const tc = to.counts.data();
  const int* const td = to.displacements.data();
  const MPI_Datatype* const ft = from.types.data();
  const MPI_Datatype* const tt = to.types.data();
  both_ways(
      n, from.words(), [&](buffers b) { MPI_Neighbor_allgatherv(b.send, n, type, b.receive, fc, fd, type, comm); },
      [&](buffers b, MPI_Request* r) { MPI_Ineighbor_allgatherv(b.send, n, type, b.receive, fc, fd, type, comm, r); });
  both_ways(
      to.words(), from.words(),
      [&](buffers b) { MPI_Neighbor_alltoallv(b.send, tc, td, type, b.receive, fc, fd, type, comm); },
      [&](buffers b, MPI_Request* r) {
        MPI_Ineighbor_alltoallv(b.send, tc, td, type, b.receive, fc, fd, type, comm, r);
      });
  both_ways(
      to.words(), from.words(),
      [&](buffers b) {
        MPI_Neighbor_alltoallw(b.send, tc, to_bytes.data(), tt, b.receive, fc, from_bytes.data(), ft, comm);
      },
      [&](buffers b, MPI_Request* r) {
        MPI_Ineighbor_alltoallw(b.send, tc, to_bytes.data(), tt, b.receive, fc, from_bytes.data(), ft, comm, r);
      });
}

TEST(collectives, NeighboursInALineWithEnds) {
  const int dimensions[] = {ranks()};
  const int periods[] = {0};
  MPI_Comm line = MPI_COMM_NULL;
  MPI_Cart_create(world, 1, dimensions, periods, 0, &line);
  exchange_with_neighbours(line, 2, 2);
  MPI_Comm_free(&line);
}

TEST(collectives, NeighboursInADistributedGraph) {
  const int from = previous_rank();
  const int to = next_rank();
  MPI_Comm ring = MPI_COMM_NULL;
  MPI_Dist_graph_create_adjacent(world, 1, &from, MPI_UNWEIGHTED, 1, &to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring);
  exchange_with_neighbours(ring, 1, 1);
  MPI_Comm_free(&ring);
}

TEST(collectives, NeighboursInAGraph) {
  std::vector<int> index;
  std::vector<int> edges;
  for (int i = 0; i < ranks(); ++i) {  // a star
    for (int j = 1; i == 0 && j < ranks(); ++j) edges.push_back(j);
    if (i != 0) edges.push_back(0);
    index.push_back(int(edges.size()));
  }
  MPI_Comm star = MPI_COMM_NULL;
  MPI_Graph_create(world, ranks(), index.data(), edges.data(), 0, &star);
  const int degree = rank() == 0 ? ranks() - 1 : 1;
  exchange_with_neighbours(star, degree, degree);
  MPI_Comm_free(&star);
}

}  // namespace
