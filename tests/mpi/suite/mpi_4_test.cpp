// Tests functions of MPI 4: functions for large counts (names that end in _c), persistent collectives, MPI_Isendrecv,
// and partitioned messages.
#include <numeric>

#include "tests/mpi/ranks.h"

namespace {

constexpr int n = 1100;
const MPI_Comm world = MPI_COMM_WORLD;
const MPI_Datatype type = MPI_UINT32_T;

TEST(mpi_4, LargeCounts) {
  const auto all = std::size_t{n} * std::size_t(ranks());
  const int to = next_rank();
  const int from = previous_rank();
  const datatype every_third(strided(n / 3));
  same_as_on_host(n, n, [&](buffers b) {
    std::array<MPI_Request, 2> requests{};
    MPI_Irecv_c(b.receive, 1, every_third, from, 1, world, &requests[0]);
    MPI_Isend_c(b.send, n / 3, type, to, 1, world, &requests[1]);
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
  });
  same_as_on_host(n, n, [&](buffers b) {
    MPI_Sendrecv_c(b.send, n, type, to, 2, b.receive, n, type, from, 2, world, MPI_STATUS_IGNORE);
  });
  same_as_on_host(n, all, [&](buffers b) { MPI_Allgather_c(b.send, n, type, b.receive, n, type, world); });
  same_as_on_host(n, n, [&](buffers b) { MPI_Allreduce_c(b.send, b.receive, n, type, MPI_SUM, world); });
  const std::vector<MPI_Count> counts(std::size_t(ranks()), n - 4);
  std::vector<MPI_Aint> places;
  std::vector<MPI_Aint> bytes;
  for (int r = 0; r < ranks(); ++r) {
    places.push_back(r * n + 3);
    bytes.push_back(places.back() * MPI_Aint{sizeof(word)});
  }
  same_as_on_host(all, all, [&](buffers b) {
    MPI_Alltoallv_c(b.send, counts.data(), places.data(), type, b.receive, counts.data(), places.data(), type, world);
  });
  const std::vector<MPI_Datatype> types(counts.size(), type);
  same_as_on_host(all, all, [&](buffers b) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ialltoallw_c(b.send, counts.data(), bytes.data(), types.data(), b.receive, counts.data(), bytes.data(),
                     types.data(), world, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  });
  same_as_on_host(all, n,
                  [&](buffers b) { MPI_Reduce_scatter_c(b.send, b.receive, counts.data(), type, MPI_SUM, world); });
  same_as_on_host(n, n, [&](buffers b) {
    MPI_Count at = 0;
    MPI_Pack_c(b.send, n - 9, type, b.receive, MPI_Count{n} * MPI_Count{sizeof(word)}, &at, world);
  });
}

// hpe sends the messages by its own protocol.
TEST(mpi_4, ReceivesWithLargeCountsGetLargeMessages) {
  constexpr int many = 1 << 20;
  const int to = next_rank();
  const int from = previous_rank();
  for (int message = 0; message < 3; ++message)
    same_as_on_host(many, many, [&](buffers b) {
      MPI_Request sending = MPI_REQUEST_NULL;
      MPI_Request receiving = MPI_REQUEST_NULL;
      MPI_Isend(b.send, many, type, to, message, world, &sending);
      if (message == 0) {
        MPI_Recv_c(b.receive, many, type, from, message, world, MPI_STATUS_IGNORE);
      } else if (message == 1) {
        MPI_Irecv_c(b.receive, many, type, from, message, world, &receiving);
      } else {
        MPI_Recv_init_c(b.receive, many, type, from, message, world, &receiving);
        MPI_Start(&receiving);
      }
      if (message > 0) MPI_Wait(&receiving, MPI_STATUS_IGNORE);
      if (message > 1) MPI_Request_free(&receiving);
      MPI_Wait(&sending, MPI_STATUS_IGNORE);
    });
}

// Datatypes from constructors with large counts. MPI_Type_get_contents_c returns the contents of these datatypes in
// another form.
TEST(mpi_4, TypesOfLargeConstructors) {
  constexpr MPI_Count bytes = sizeof(word);
  const std::array<MPI_Count, 3> lengths{2, 5, 1};
  const std::array<MPI_Count, 3> places{40, 3, 90};
  const std::array<MPI_Count, 3> byte_places{160, 12, 360};
  const std::array<MPI_Datatype, 3> types{type, type, MPI_INT32_T};
  const std::array<MPI_Count, 2> sizes{20, 30};
  const std::array<MPI_Count, 2> parts{7, 9};
  const std::array<MPI_Count, 2> starts{4, 11};
  const std::array<int, 2> grid{2, 1};
  const std::array<int, 2> ways{MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK};
  const std::array<int, 2> arguments{3, MPI_DISTRIBUTE_DFLT_DARG};
  using make = std::function<void(MPI_Datatype*)>;
  const std::vector<std::pair<const char*, make>> all{
      {"contiguous", [&](MPI_Datatype* t) { MPI_Type_contiguous_c(77, type, t); }},
      {"vector", [&](MPI_Datatype* t) { MPI_Type_vector_c(9, 4, 11, type, t); }},
      {"hvector", [&](MPI_Datatype* t) { MPI_Type_create_hvector_c(9, 4, 13 * bytes, type, t); }},
      {"indexed", [&](MPI_Datatype* t) { MPI_Type_indexed_c(3, lengths.data(), places.data(), type, t); }},
      {"hindexed",
       [&](MPI_Datatype* t) { MPI_Type_create_hindexed_c(3, lengths.data(), byte_places.data(), type, t); }},
      {"indexed block", [&](MPI_Datatype* t) { MPI_Type_create_indexed_block_c(3, 6, places.data(), type, t); }},
      {"hindexed block", [&](MPI_Datatype* t) { MPI_Type_create_hindexed_block_c(3, 6, byte_places.data(), type, t); }},
      {"struct",
       [&](MPI_Datatype* t) { MPI_Type_create_struct_c(3, lengths.data(), byte_places.data(), types.data(), t); }},
      {"subarray",
       [&](MPI_Datatype* t) {
         MPI_Type_create_subarray_c(2, sizes.data(), parts.data(), starts.data(), MPI_ORDER_C, type, t);
       }},
      {"darray",
       [&](MPI_Datatype* t) {
         MPI_Type_create_darray_c(2, 1, 2, sizes.data(), ways.data(), arguments.data(), grid.data(), MPI_ORDER_FORTRAN,
                                  type, t);
       }},
      {"resized", [&](MPI_Datatype* t) { MPI_Type_create_resized_c(type, 0, 3 * bytes, t); }},
  };
  for (const auto& [name, make_it] : all) {
    SCOPED_TRACE(name);
    MPI_Datatype made = MPI_DATATYPE_NULL;
    make_it(&made);
    const datatype each(made);
    // hpe must compute the type map of the datatype and stage the buffer. If hpe could not do this, MPI itself would
    // access the memory.
    if (!driver_bytes::wanted()) {
      const device_bytes send(random_bytes(2 * n), owner::device);
      const device_bytes receive(random_bytes(2 * n), owner::device);
      hpeResetStatistics();
      MPI_Sendrecv(send.data(), 1, each, next_rank(), 6, receive.data(), 1, each, previous_rank(), 6, world,
                   MPI_STATUS_IGNORE);
      hpeStatistics counts;
      counts.struct_size = sizeof counts;
      EXPECT_EQ(hpeGetStatistics(&counts), HPE_SUCCESS);
      EXPECT_EQ(counts.faults_read + counts.faults_write, 0U);
    }
    same_as_on_host(2 * n, 2 * n, [&](buffers b) {
      MPI_Sendrecv(b.send, 1, each, next_rank(), 6, b.receive + n, 1, each, previous_rank(), 6, world,
                   MPI_STATUS_IGNORE);
    });
  }
}

TEST(mpi_4, PersistentCollectives) {
  const auto all = std::size_t{n} * std::size_t(ranks());
  same_as_on_host(all, all, [&](buffers b) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Alltoall_init(b.send, n, type, b.receive, n, type, world, MPI_INFO_NULL, &request);
    for (word round = 0; round < 3; ++round) {
      b.send[5] = round + word(rank());  // each start reads the buffer again
      MPI_Start(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      b.send[6] += b.receive[5];
    }
    MPI_Request_free(&request);
  });
  same_as_on_host(n, n, [&](buffers b) {
    std::array<MPI_Request, 2> requests{};
    MPI_Bcast_init(b.send, n, type, 0, world, MPI_INFO_NULL, &requests[0]);
    MPI_Allreduce_init_c(MPI_IN_PLACE, b.receive, n, type, MPI_MAX, world, MPI_INFO_NULL, &requests[1]);
    for (int round = 0; round < 2; ++round) {
      MPI_Startall(2, requests.data());
      MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
      b.receive[7] += word(rank() + round);
    }
    for (MPI_Request& r : requests) MPI_Request_free(&r);
  });
}

TEST(mpi_4, NonBlockingExchanges) {
  same_as_on_host(n, n, [&](buffers b) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isendrecv(b.send, n, type, next_rank(), 3, b.receive, n, type, previous_rank(), 3, world, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Isendrecv_replace(b.receive, n, type, next_rank(), 4, previous_rank(), 4, world, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  });
}

// Waits for each partition of a started receive, in the given order. Returns the sum of the words that the receiver
// finds in partition number `order.back()` directly after it has arrived, when other partitions may still be missing.
word sum_on_arrival(MPI_Request request, const std::vector<int>& order, const word* buffer, int words) {
  word sum = 0;
  for (const int partition : order) {
    for (int arrived = 0; arrived == 0;) MPI_Parrived(request, partition, &arrived);
    const word* const first = buffer + std::ptrdiff_t{partition} * words;
    sum = std::accumulate(first, first + words, word{0});
  }
  return sum;
}

TEST(mpi_4, PartitionedMessages) {
  constexpr int partitions = 5;
  constexpr int words = n / partitions;
  same_as_on_host(n, n, [&](buffers b) {
    std::array<MPI_Request, 2> requests{};
    MPI_Precv_init(b.receive, partitions, words, type, previous_rank(), 5, world, MPI_INFO_NULL, &requests[0]);
    MPI_Psend_init(b.send, partitions, words, type, next_rank(), 5, world, MPI_INFO_NULL, &requests[1]);
    std::array<int, 2> list{4, 1};  // the mpi.h of MPICH 4.0 declares the list without const
    for (word round = 0; round < 3; ++round) {
      MPI_Startall(2, requests.data());
      // A partition is read when it becomes ready, not at the start.
      b.send[0] = round + word(rank());
      MPI_Pready(0, requests[1]);
      b.send[2 * words + 3] += round;
      MPI_Pready_range(2, 3, requests[1]);
      b.send[4 * words] -= round;
      MPI_Pready_list(2, list.data(), requests[1]);
      const word sum = round < 2 ? sum_on_arrival(requests[0], {3, 0, 4}, b.receive, words) : 0;
      // The last round waits for all partitions at once.
      MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
      b.send[1] += b.receive[5] + sum;
      b.receive[7] += 1;
      b.receive[n - 1] ^= sum;
    }
    for (MPI_Request& r : requests) MPI_Request_free(&r);
  });
}

// The bytes of neighbouring partitions interleave, and the bytes in gaps belong to the receiver.
TEST(mpi_4, PartitionedMessagesWithGaps) {
  MPI_Datatype column = MPI_DATATYPE_NULL;
  MPI_Type_create_resized(datatype(strided(100)), 0, sizeof(word), &column);
  const datatype each(column);
  same_as_on_host(n, n, [&](buffers b) {
    std::array<MPI_Request, 2> requests{};
    MPI_Precv_init(b.receive, 2, 1, each, previous_rank(), 6, world, MPI_INFO_NULL, &requests[0]);
    MPI_Psend_init(b.send, 2, 1, each, next_rank(), 6, world, MPI_INFO_NULL, &requests[1]);
    for (int round = 0; round < 2; ++round) {
      MPI_Startall(2, requests.data());
      MPI_Pready(1, requests[1]);
      MPI_Pready(0, requests[1]);
      MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
      b.send[3] += b.receive[3];
    }
    for (MPI_Request& r : requests) MPI_Request_free(&r);
  });
}

TEST(mpi_4, ANumberBeyondThePartitionsIsMpisError) {
  const errors_returned here;
  const device_bytes memory(random_bytes(n), owner::device);
  MPI_Request request = MPI_REQUEST_NULL;
  ASSERT_EQ(MPI_Psend_init(memory.data(), 2, n / 2, type, rank(), 8, world, MPI_INFO_NULL, &request), MPI_SUCCESS);
  EXPECT_NE(MPI_Pready(2, request), MPI_SUCCESS);
  EXPECT_NE(MPI_Pready_range(-1, 1, request), MPI_SUCCESS);
  MPI_Request_free(&request);
}

}  // namespace
