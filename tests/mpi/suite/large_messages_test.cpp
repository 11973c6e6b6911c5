// Tests messages that hpe sends in chunks or copies directly (interpose/mpi/messages), which must behave like other
// messages. Environment variables set the smallest sizes of these messages: with HPE_MPI_LARGE=2k, nearly all messages
// are large.
#include "tests/mpi/suite/large_messages.h"

#include <memory>

using namespace large_messages_tests;  // NOLINT(google-build-using-namespace): a test program

namespace {

TEST(large_messages, EveryPairOfKindsOfMemory) {
  for (const int kinds : {0, 1, 2, 3}) {
    SCOPED_TRACE(kinds);
    either from(numbered(n, word(rank())), (kinds & 1) != 0);
    either to(numbered(n + 5, 77), (kinds & 2) != 0);
    MPI_Request request;
    MPI_Isend(from.data(), n, MPI_UINT32_T, next_rank(), tag, world, &request);
    MPI_Status status;
    MPI_Recv(to.data(), n + 5, MPI_UINT32_T, previous_rank(), tag, world, &status);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_EQ(words_in(status), n);
    EXPECT_EQ(status.MPI_SOURCE, previous_rank());
    EXPECT_EQ(status.MPI_TAG, tag);
    auto expected = numbered(n + 5, 77);
    const auto sent = numbered(n, word(previous_rank()));
    std::copy(sent.begin(), sent.end(), expected.begin());
    EXPECT_TRUE(equal(to.content(), expected));
  }
}

// A message that is longer than 64 MiB, the size of the steps in which hpe makes direct copies.
TEST(large_messages, LongerThanOneStepOfADirectCopy) {
  constexpr int words = (68 << 20) / int{sizeof(word)} + 3;
  if (rank() > 1) return;
  either memory(numbered(words, word(rank())), true);
  if (rank() == 0) MPI_Send(memory.data(), words, MPI_UINT32_T, 1, tag, world);
  if (rank() == 1) MPI_Recv(memory.data(), words, MPI_UINT32_T, 0, tag, world, MPI_STATUS_IGNORE);
  EXPECT_TRUE(equal(memory.content(), numbered(words, 0)));
}

// The ranks wait for different operations. While a rank waits for one operation, its other operations must continue.
TEST(large_messages, ProgressWhileWaitingForSomethingElse) {
  either from(numbered(n, 5), true);
  either to(numbered(n, 6), true);
  const auto check = [&] { EXPECT_TRUE(equal(to.content(), numbered(n, 5))); };
  MPI_Request request;
  // The sender waits in a collective call, the receiver in its receive.
  if (rank() == 0) {
    MPI_Isend(from.data(), n, MPI_UINT32_T, 1, tag, world, &request);
    MPI_Barrier(world);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    if (rank() == 1) MPI_Recv(to.data(), n, MPI_UINT32_T, 0, tag, world, MPI_STATUS_IGNORE);
    MPI_Barrier(world);
    if (rank() == 1) check();
  }
  // The receiver waits for a message that the sender sends only after its own wait.
  word token = 0;
  if (rank() == 0) {
    MPI_Isend(from.data(), n, MPI_UINT32_T, 1, tag, world, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Send(&token, 1, MPI_UINT32_T, 1, tag + 1, world);
  } else if (rank() == 1) {
    MPI_Irecv(to.data(), n, MPI_UINT32_T, 0, tag, world, &request);
    MPI_Recv(&token, 1, MPI_UINT32_T, 0, tag + 1, world, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check();
  }
  // The receiver waits in a probe, and then in a broadcast.
  if (rank() == 0) {
    MPI_Ssend(from.data(), n, MPI_UINT32_T, 1, tag, world);
    MPI_Send(&token, 1, MPI_UINT32_T, 1, tag + 1, world);
  } else if (rank() == 1) {
    MPI_Irecv(to.data(), n, MPI_UINT32_T, 0, tag, world, &request);
    MPI_Probe(0, tag + 1, world, MPI_STATUS_IGNORE);
    MPI_Recv(&token, 1, MPI_UINT32_T, 0, tag + 1, world, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check();
  }
  if (rank() == 0) {
    MPI_Send(from.data(), n, MPI_UINT32_T, 1, tag, world);
    MPI_Bcast(&token, 1, MPI_UINT32_T, 0, world);
  } else {
    if (rank() == 1) MPI_Irecv(to.data(), n, MPI_UINT32_T, 0, tag, world, &request);
    MPI_Bcast(&token, 1, MPI_UINT32_T, 0, world);
    if (rank() == 1) {
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      check();
    }
  }
}

TEST(large_messages, OrderTagsAndWildcards) {
  constexpr int many = 6;
  const int size = n / 8;
  std::vector<std::unique_ptr<either>> from;
  std::vector<std::unique_ptr<either>> to;
  std::vector<MPI_Request> requests(many);
  for (int i = 0; i < many; ++i) {
    // Short and long messages, in ordinary memory and hpe memory, with one tag.
    from.push_back(std::make_unique<either>(numbered(std::size_t(i % 3 == 2 ? 3 : size + i), word(i)), i % 2 == 0));
    to.push_back(std::make_unique<either>(numbered(std::size_t(size) + many, 99), i % 3 == 0));
  }
  const auto length = [&](int i) { return i % 3 == 2 ? 3 : size + i; };
  for (int i = 0; i < many; ++i)
    MPI_Isend(from[std::size_t(i)]->data(), length(i), MPI_UINT32_T, next_rank(), tag, world,
              &requests[std::size_t(i)]);
  for (int i = 0; i < many; ++i) {
    MPI_Status status;
    const int source = i % 2 == 0 ? MPI_ANY_SOURCE : previous_rank();
    MPI_Recv(to[std::size_t(i)]->data(), size + many, MPI_UINT32_T, source, i < 3 ? MPI_ANY_TAG : tag, world, &status);
    ASSERT_EQ(words_in(status), length(i)) << "messages overtook each other";
    const auto content = to[std::size_t(i)]->content();
    const auto sent = numbered(std::size_t(length(i)), word(i));
    EXPECT_TRUE(std::equal(sent.begin(), sent.end(), content.begin()));
  }
  MPI_Waitall(many, requests.data(), MPI_STATUSES_IGNORE);
}

TEST(large_messages, ProbesTellTheSizeAndKeepTheOrder) {
  MPI_Comm other;
  MPI_Comm_dup(world, &other);
  either from(numbered(n, 1), true);
  // A message as long as an envelope (interpose/mpi/messages/envelope.h).
  const auto decoy = numbered(2032 / sizeof(word), 2);
  std::array<MPI_Request, 4> requests{};
  MPI_Isend(decoy.data(), int(decoy.size()), MPI_BYTE, next_rank(), 3, other, &requests[0]);
  MPI_Isend(from.data(), n - 1, MPI_UINT32_T, next_rank(), 4, other, &requests[1]);
  MPI_Isend(from.data(), n, MPI_UINT32_T, next_rank(), 5, other, &requests[2]);
  MPI_Isend(decoy.data(), 8, MPI_BYTE, next_rank(), 6, other, &requests[3]);
  MPI_Status status;
  MPI_Probe(previous_rank(), 5, other, &status);
  EXPECT_EQ(words_in(status), n);
  EXPECT_EQ(status.MPI_TAG, 5);
  int flag = 0;
  while (flag == 0) MPI_Iprobe(MPI_ANY_SOURCE, 4, other, &flag, &status);
  EXPECT_EQ(words_in(status), n - 1);
  // Messages must arrive in the order in which they were sent, even if the receive accepts any source.
  either to(numbered(n, 9), true);
  MPI_Recv(to.data(), n, MPI_UINT32_T, MPI_ANY_SOURCE, MPI_ANY_TAG, other, &status);
  EXPECT_EQ(status.MPI_TAG, 3);
  EXPECT_EQ(status.MPI_SOURCE, previous_rank());
  int bytes = 0;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  EXPECT_EQ(bytes, 2032);
  auto content = to.content();
  EXPECT_TRUE(std::equal(decoy.begin(), decoy.end(), content.begin()));
  MPI_Message message;
  MPI_Mprobe(previous_rank(), MPI_ANY_TAG, other, &message, &status);
  EXPECT_EQ(status.MPI_TAG, 4);
  EXPECT_EQ(words_in(status), n - 1);
  MPI_Request receive;
  MPI_Recv_init(to.data(), n, MPI_UINT32_T, MPI_ANY_SOURCE, MPI_ANY_TAG, other, &receive);
  MPI_Start(&receive);
  MPI_Wait(&receive, &status);
  EXPECT_EQ(status.MPI_TAG, 5);
  EXPECT_EQ(words_in(status), n);
  EXPECT_TRUE(equal(to.content(), numbered(n, 1)));
  MPI_Request_free(&receive);
  MPI_Mrecv(to.data(), n, MPI_UINT32_T, &message, &status);
  EXPECT_EQ(message, MPI_MESSAGE_NULL);
  EXPECT_EQ(status.MPI_TAG, 4);
  EXPECT_EQ(status.MPI_SOURCE, previous_rank());
  EXPECT_EQ(words_in(status), n - 1);
  content = to.content();
  const auto sent = numbered(n - 1, 1);
  EXPECT_TRUE(std::equal(sent.begin(), sent.end(), content.begin()));
  char rest[8];
  MPI_Sendrecv(rest, 0, MPI_BYTE, MPI_PROC_NULL, 0, rest, 8, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, other, &status);
  EXPECT_EQ(status.MPI_TAG, 6);
  MPI_Waitall(4, requests.data(), MPI_STATUSES_IGNORE);
  MPI_Comm_free(&other);
}

TEST(large_messages, CancelledFreedAndPersistentReceives) {
  either from(numbered(n, 3), true);
  either to(numbered(n, 4), true);
  MPI_Request request;
  MPI_Status status;
  int flag = 0;
  MPI_Irecv(to.data(), n, MPI_UINT32_T, previous_rank(), 1234, world, &request);
  MPI_Cancel(&request);
  MPI_Wait(&request, &status);
  MPI_Test_cancelled(&status, &flag);
  EXPECT_EQ(flag, 1);
  EXPECT_TRUE(equal(to.content(), numbered(n, 4)));

  MPI_Request send;
  MPI_Recv_init(to.data(), n, MPI_UINT32_T, previous_rank(), tag, world, &request);
  MPI_Send_init(from.data(), n, MPI_UINT32_T, next_rank(), tag, world, &send);
  MPI_Start(&request);
  MPI_Cancel(&request);
  MPI_Wait(&request, &status);
  MPI_Test_cancelled(&status, &flag);
  EXPECT_EQ(flag, 1);
  EXPECT_NE(request, MPI_REQUEST_NULL);
  MPI_Barrier(world);
  for (int round = 0; round < 3; ++round) {
    MPI_Start(&send);
    MPI_Start(&request);
    // In round 2, the test frees the request during the transfer. The receiver must get the data nevertheless.
    if (round == 2) MPI_Request_free(&send);
    for (flag = 0; flag == 0 && round == 1;) MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
    MPI_Wait(&request, &status);
    EXPECT_EQ(words_in(status), n);
    EXPECT_TRUE(equal(to.content(), numbered(n, 3)));
    if (round != 2) MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Barrier(world);
    hpeMemset(to.data(), 0, n * sizeof(word));
  }
  EXPECT_EQ(send, MPI_REQUEST_NULL);
  MPI_Request_free(&request);
  MPI_Isend(from.data(), n, MPI_UINT32_T, next_rank(), tag, world, &send);
  MPI_Request_free(&send);
  MPI_Recv(to.data(), n, MPI_UINT32_T, previous_rank(), tag, world, MPI_STATUS_IGNORE);
  EXPECT_TRUE(equal(to.content(), numbered(n, 3)));
  if (!whole_messages()) {  // hpe never cancels large sends
    hpeMemset(to.data(), 0, n * sizeof(word));
    MPI_Isend(from.data(), n, MPI_UINT32_T, next_rank(), tag, world, &send);
    MPI_Cancel(&send);
    MPI_Recv(to.data(), n, MPI_UINT32_T, previous_rank(), tag, world, MPI_STATUS_IGNORE);
    MPI_Wait(&send, &status);
    MPI_Test_cancelled(&status, &flag);
    EXPECT_EQ(flag, 0);
    EXPECT_TRUE(equal(to.content(), numbered(n, 3)));
  }
  MPI_Barrier(world);  // all ranks have received, so the buffers may be freed
}

TEST(large_messages, TypesWithGapsOnTheReceivingSide) {
  for (const bool on_device : {false, true}) {
    constexpr int elements = 40'003;  // few enough for the device memory, which must hold six copies of each message
    const datatype type(strided(7));
    either from(numbered(elements * 7, 3), true);
    either to(numbered(elements * 21, 4), on_device);
    auto expected = numbered(elements * 21, 4);
    const auto sent = numbered(elements * 7, 3);
    int position = 0;
    MPI_Unpack(sent.data(), int(sent.size()), &position, expected.data(), elements, type, world);
    MPI_Request request;
    MPI_Irecv(to.data(), elements, type, previous_rank(), tag, world, &request);
    MPI_Send(from.data(), elements * 7, MPI_UINT32_T, next_rank(), tag, world);
    MPI_Status status;
    MPI_Wait(&request, &status);
    int count = 0;
    MPI_Get_count(&status, type, &count);
    EXPECT_EQ(count, elements);
    MPI_Get_elements(&status, type, &count);
    EXPECT_EQ(count, elements * 7);
    EXPECT_TRUE(equal(to.content(), expected));
  }
}

TEST(large_messages, WhatKeepsTheOrdinaryWay) {
  either from(numbered(n, 3), true);
  either to(numbered(n, 4), true);
  MPI_Request request;
  MPI_Isend(from.data(), n, MPI_UINT32_T, rank(), tag, world, &request);
  MPI_Recv(to.data(), n, MPI_UINT32_T, rank(), tag, world, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT_TRUE(equal(to.content(), numbered(n, 3)));
  // A buffered send does not wait for its receiver.
  std::vector<std::byte> room(n * sizeof(word) + MPI_BSEND_OVERHEAD);
  MPI_Buffer_attach(room.data(), int(room.size()));
  MPI_Bsend(to.data(), n, MPI_UINT32_T, next_rank(), tag, world);
  MPI_Barrier(world);
  MPI_Recv(from.data(), n, MPI_UINT32_T, previous_rank(), tag, world, MPI_STATUS_IGNORE);
  void* detached = nullptr;
  int size = 0;
  MPI_Buffer_detach(&detached, &size);
  MPI_Send(from.data(), n, MPI_UINT32_T, MPI_PROC_NULL, tag, world);
  // Messages on an intercommunicator.
  if (ranks() < 2) return;
  MPI_Comm half;
  MPI_Comm inter;
  MPI_Comm_split(world, rank() % 2, rank(), &half);
  MPI_Intercomm_create(half, 0, world, 1 - rank() % 2, 7, &inter);
  int there = 0;
  int mine = 0;
  MPI_Comm_remote_size(inter, &there);
  MPI_Comm_rank(half, &mine);
  if (mine < there) {
    MPI_Sendrecv(from.data(), n, MPI_UINT32_T, mine, tag, to.data(), n, MPI_UINT32_T, mine, tag, inter,
                 MPI_STATUS_IGNORE);
    EXPECT_TRUE(equal(to.content(), numbered(n, 3)));
  }
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

TEST(large_messages, AKernelThatWritesWhatIsSent) {
  hpe::array<word> from(n);
  either to(numbered(n, 4), true);
  for (word round = 0; round < 3; ++round) {
    // hpeMemset returns before the device has written the bytes.
    hpeMemset(from.data(), int(round + 1), n * sizeof(word));
    MPI_Request request;
    MPI_Isend(from.data(), n, MPI_UINT32_T, next_rank(), tag, world, &request);
    MPI_Recv(to.data(), n, MPI_UINT32_T, previous_rank(), tag, world, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_TRUE(equal(to.content(), std::vector<std::byte>(n * sizeof(word), std::byte(round + 1))));
  }
}

TEST(large_messages, RanksOfOneMachineCopyDirectly) {
  const char* const least = std::getenv("HPE_MPI_DIRECT");
  MPI_Comm machine;
  MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
  int here = 0;
  MPI_Comm_size(machine, &here);
  MPI_Comm_free(&machine);
  if (here != ranks() || here == 1 || (least != nullptr && std::strcmp(least, "0") == 0) || whole_messages())
    GTEST_SKIP() << "not all ranks are on one machine, or they do not copy directly";
  const either from(numbered(n, 1), true);
  const either to(numbered(n, 2), true);
  MPI_Barrier(world);
  hpeResetStatistics();
  MPI_Sendrecv(from.data(), n, MPI_UINT32_T, next_rank(), tag, to.data(), n, MPI_UINT32_T, previous_rank(), tag, world,
               MPI_STATUS_IGNORE);
  hpeStatistics statistics;
  hpeGetStatistics(&statistics);
  EXPECT_EQ(statistics.bytes_to_host, 0U);
  EXPECT_TRUE(equal(to.content(), numbered(n, 1)));
}

// Many messages at once in both directions, with random sizes, in ordinary memory and hpe memory. Different MPI
// functions complete them.
TEST(large_messages, ManyAtOnceOfAnySize) {
  SCOPED_TRACE("rank " + std::to_string(rank()) + ", seed " + std::to_string(seed()));
  constexpr int many = 12;
  std::mt19937 random(seed());
  unsigned shared_seed = seed();
  MPI_Bcast(&shared_seed, 1, MPI_UNSIGNED, 0, world);
  std::mt19937 common(shared_seed);
  for (int round = 0; round < 4; ++round) {
    std::vector<int> lengths;
    for (int i = 0; i < many; ++i) lengths.push_back(int(1U << common() % 20U) + int(common() % 100U));
    std::vector<either> from;
    std::vector<either> to;
    std::vector<MPI_Request> requests(2 * many);
    std::vector<int> order;
    for (int i = 0; i < many; ++i) {
      from.emplace_back(numbered(std::size_t(lengths[std::size_t(i)]), word(rank() * 100 + i)), random() % 3 != 0);
      to.emplace_back(numbered(std::size_t(lengths[std::size_t(i)]), 4242), random() % 3 != 0);
      order.push_back(i);
    }
    std::shuffle(order.begin(), order.end(), random);
    for (const int i : order)
      MPI_Irecv(to[std::size_t(i)].data(), lengths[std::size_t(i)], MPI_UINT32_T, previous_rank(), i, world,
                &requests[std::size_t(i)]);
    std::shuffle(order.begin(), order.end(), random);
    for (const int i : order)
      MPI_Isend(from[std::size_t(i)].data(), lengths[std::size_t(i)], MPI_UINT32_T, next_rank(), i, world,
                &requests[many + std::size_t(i)]);
    std::vector<int> indices(2 * many);
    const auto left = [&] {
      return std::any_of(requests.begin(), requests.end(), [](MPI_Request r) { return r != MPI_REQUEST_NULL; });
    };
    while (left()) {
      int flag = 0;
      int index = 0;
      MPI_Request& one = requests[random() % requests.size()];
      switch (random() % 9) {
        case 0: MPI_Test(&one, &flag, MPI_STATUS_IGNORE); break;
        case 1: MPI_Testany(2 * many, requests.data(), &index, &flag, MPI_STATUS_IGNORE); break;
        case 2: MPI_Testsome(2 * many, requests.data(), &index, indices.data(), MPI_STATUSES_IGNORE); break;
        case 3: MPI_Waitany(2 * many, requests.data(), &index, MPI_STATUS_IGNORE); break;
        case 4: MPI_Waitsome(2 * many, requests.data(), &index, indices.data(), MPI_STATUSES_IGNORE); break;
        case 5: MPI_Wait(&one, MPI_STATUS_IGNORE); break;
        case 6: MPI_Testall(2 * many, requests.data(), &flag, MPI_STATUSES_IGNORE); break;
        case 7: MPI_Iprobe(MPI_ANY_SOURCE, 31000, world, &flag, MPI_STATUS_IGNORE); break;
        default:
          if (random() % 8 == 0) MPI_Waitall(2 * many, requests.data(), MPI_STATUSES_IGNORE);
      }
    }
    for (int i = 0; i < many; ++i)
      ASSERT_TRUE(equal(to[std::size_t(i)].content(),
                        numbered(std::size_t(lengths[std::size_t(i)]), word(previous_rank() * 100 + i))));
  }
}

}  // namespace
