// Tests send and receive functions of every kind. Each rank sends to the next rank of a ring.
#include "tests/mpi/ranks.h"

namespace {

constexpr int n = 3000;
constexpr int tag = 5;
const MPI_Comm world = MPI_COMM_WORLD;

using send_function = int(const void*, int, MPI_Datatype, int, int, MPI_Comm);
using start_function = int(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);

TEST(point_to_point, BlockingSends) {
  for (send_function* send : {MPI_Send, MPI_Ssend, MPI_Rsend, MPI_Bsend}) {
    same_as_on_host(n, n, [&](buffers b) {
      // The attached buffer is in hpe memory, too.
      const hpe::array<std::byte> room(n * sizeof(word) + MPI_BSEND_OVERHEAD);
      MPI_Buffer_attach(room.data(), static_cast<int>(room.size()));
      MPI_Request request;
      MPI_Irecv(b.receive + 1, n - 2, MPI_UINT32_T, previous_rank(), tag, world, &request);
      MPI_Barrier(world);  // a ready send requires that its receive has begun
      ASSERT_EQ(send(b.send + 2, n - 2, MPI_UINT32_T, next_rank(), tag, world), MPI_SUCCESS);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      void* detached = nullptr;
      int size = 0;
      MPI_Buffer_detach(&detached, &size);
      EXPECT_EQ(detached, room.data());
      EXPECT_EQ(static_cast<std::size_t>(size), room.size());
    });
  }
}

TEST(point_to_point, NonBlockingSends) {
  for (start_function* send : {MPI_Isend, MPI_Issend, MPI_Irsend}) {
    same_as_on_host(n, n, [&](buffers b) {
      std::array<MPI_Request, 2> requests{};
      MPI_Irecv(b.receive, n, MPI_UINT32_T, previous_rank(), tag, world, &requests[0]);
      MPI_Barrier(world);
      ASSERT_EQ(send(b.send, n, MPI_UINT32_T, next_rank(), tag, world, &requests[1]), MPI_SUCCESS);
      MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    });
  }
}

TEST(point_to_point, BufferedNonBlockingSend) {
  same_as_on_host(n, n, [&](buffers b) {
    std::vector<std::byte> room(n * sizeof(word) + MPI_BSEND_OVERHEAD);
    MPI_Buffer_attach(room.data(), static_cast<int>(room.size()));
    MPI_Request request;
    MPI_Ibsend(b.send, n, MPI_UINT32_T, next_rank(), tag, world, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Recv(b.receive, n, MPI_UINT32_T, previous_rank(), tag, world, MPI_STATUS_IGNORE);
    void* detached = nullptr;
    int size = 0;
    MPI_Buffer_detach(&detached, &size);
    EXPECT_EQ(detached, room.data());
  });
}

TEST(point_to_point, AReceiveOfLessThanItsBufferLeavesTheRest) {
  for (const int sent : {0, 1, n / 2, n}) {
    same_as_on_host(n, n, [&](buffers b) {
      MPI_Request request;
      MPI_Isend(b.send, sent, MPI_UINT32_T, next_rank(), tag, world, &request);
      MPI_Status status;
      ASSERT_EQ(MPI_Recv(b.receive, n, MPI_UINT32_T, MPI_ANY_SOURCE, MPI_ANY_TAG, world, &status), MPI_SUCCESS);
      int count = -1;
      MPI_Get_count(&status, MPI_UINT32_T, &count);
      EXPECT_EQ(count, sent);
      EXPECT_EQ(status.MPI_SOURCE, previous_rank());
      EXPECT_EQ(status.MPI_TAG, tag);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    });
  }
}

TEST(point_to_point, SendAndReceiveInOne) {
  same_as_on_host(n, n, [&](buffers b) {
    MPI_Sendrecv(b.send, n, MPI_UINT32_T, next_rank(), tag, b.receive, n, MPI_UINT32_T, previous_rank(), tag, world,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(b.send, n / 2, MPI_UINT32_T, next_rank(), tag, b.receive, n, MPI_UINT32_T, previous_rank(), tag, world,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv_replace(b.send, n, MPI_UINT32_T, next_rank(), tag, previous_rank(), tag, world, MPI_STATUS_IGNORE);
  });
}

TEST(point_to_point, MatchedProbes) {
  same_as_on_host(n, n, [&](buffers b) {
    for (const bool blocking : {true, false}) {
      MPI_Request request;
      MPI_Isend(b.send, n - 7, MPI_UINT32_T, next_rank(), tag, world, &request);
      MPI_Message message;
      MPI_Status status;
      MPI_Mprobe(MPI_ANY_SOURCE, tag, world, &message, &status);
      int count = 0;
      MPI_Get_count(&status, MPI_UINT32_T, &count);
      EXPECT_EQ(count, n - 7);
      if (blocking) {
        MPI_Mrecv(b.receive, count, MPI_UINT32_T, &message, &status);
      } else {
        MPI_Request receive;
        MPI_Imrecv(b.receive, count, MPI_UINT32_T, &message, &receive);
        MPI_Wait(&receive, &status);
      }
      EXPECT_EQ(status.MPI_SOURCE, previous_rank());
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
  });
}

TEST(point_to_point, PersistentSends) {
  for (start_function* make : {MPI_Send_init, MPI_Ssend_init, MPI_Rsend_init, MPI_Bsend_init}) {
    // Buffered messages are short here: in Open MPI 4.1, the second start of a long buffered message sends zeros first,
    // even from ordinary memory.
    const int words = make == MPI_Bsend_init ? 700 : n;
    same_as_on_host(words, words, [&](buffers b) {
      std::vector<std::byte> room(4 * (words * sizeof(word) + MPI_BSEND_OVERHEAD));
      MPI_Buffer_attach(room.data(), static_cast<int>(room.size()));
      std::array<MPI_Request, 2> requests{};
      MPI_Recv_init(b.receive, words, MPI_UINT32_T, previous_rank(), tag, world, &requests[0]);
      make(b.send, words, MPI_UINT32_T, next_rank(), tag, world, &requests[1]);
      for (word round = 0; round < 3; ++round) {
        b.send[round] = round;  // each start reads the buffer again
        MPI_Start(&requests[0]);
        MPI_Barrier(world);
        MPI_Start(&requests[1]);
        MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
        EXPECT_NE(requests[0], MPI_REQUEST_NULL);
        b.receive[words - 1 - int(round)] += 1;  // the message of the next round overwrites this word
      }
      MPI_Request_free(&requests[0]);
      MPI_Request_free(&requests[1]);
      EXPECT_EQ(requests[0], MPI_REQUEST_NULL);
      void* detached = nullptr;
      int size = 0;
      MPI_Buffer_detach(&detached, &size);
    });
  }
}

TEST(point_to_point, NobodyAtTheOtherEnd) {
  same_as_on_host(n, n, [&](buffers b) {
    MPI_Send(b.send, n, MPI_UINT32_T, MPI_PROC_NULL, tag, world);
    MPI_Recv(b.receive, n, MPI_UINT32_T, MPI_PROC_NULL, tag, world, MPI_STATUS_IGNORE);
    MPI_Request request;
    MPI_Irecv(b.receive, n, MPI_UINT32_T, MPI_PROC_NULL, tag, world, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  });
}

TEST(point_to_point, LargeMessagesAndStripedMemory) {
  constexpr int large = (5 << 20) / 4 + 11;
  const hpe::array<word> from(large, hpe::cyclic_distribution());
  const hpe::array<word> to(large, hpe::cyclic_distribution());
  hpe::launch(test_kernel().fill, hpe::grid(test_tiles), {from.data(), large, word(rank()) << 24}, hpe::out(from));
  MPI_Request request;
  MPI_Irecv(to.data(), large, MPI_UINT32_T, previous_rank(), tag, world, &request);
  MPI_Send(from.data(), large, MPI_UINT32_T, next_rank(), tag, world);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  hpe::launch(test_kernel().increment, hpe::grid(test_tiles), {to.data(), large, 1, 0}, hpe::inout(to));
  for (word i = 0; i < large; ++i) ASSERT_EQ(to[i], (word(previous_rank()) << 24) + i + 1);
}

TEST(point_to_point, HostMemoryOfHpe) {
  const hpe::array<word> from(n, hpe::on_host());
  const hpe::array<word> to(n, hpe::on_host());
  hpe::launch(test_kernel().fill, hpe::grid(1), {from.data(), n, word(rank())}, hpe::out(from));
  MPI_Sendrecv(from.data(), n, MPI_UINT32_T, next_rank(), tag, to.data(), n, MPI_UINT32_T, previous_rank(), tag, world,
               MPI_STATUS_IGNORE);
  for (word i = 0; i < n; ++i) ASSERT_EQ(to[i], word(previous_rank()) + i);
}

}  // namespace
