// Tests programs in which kernels, the host and MPI use the same memory without synchronisation by the program.
#include <atomic>
#include <thread>

#include "tests/mpi/ranks.h"

namespace {

constexpr int n = 100000;
const MPI_Comm world = MPI_COMM_WORLD;

hpeStatistics statistics() {
  hpeStatistics s{};
  hpeGetStatistics(&s);
  return s;
}

TEST(coherence, AKernelAndASendAndAReceiveAndAKernel) {
  const hpe::array<word> from(n);
  const hpe::array<word> to(n);
  for (word round = 0; round < 20; ++round) {
    hpe::launch(test_kernel().fill, hpe::grid(1), {from.data(), n, round + word(rank())}, hpe::out(from));
    hpe::launch(test_kernel().increment, hpe::grid(1), {from.data(), n, 1, 2000}, hpe::inout(from));
    MPI_Request request;
    MPI_Irecv(to.data(), n, MPI_UINT32_T, previous_rank(), 0, world, &request);
    MPI_Send(from.data(), n, MPI_UINT32_T, next_rank(), 0, world);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    hpe::launch(test_kernel().increment, hpe::grid(1), {to.data(), n, 10, 0}, hpe::inout(to));
    MPI_Sendrecv_replace(to.data(), n, MPI_UINT32_T, previous_rank(), 1, next_rank(), 1, world, MPI_STATUS_IGNORE);
    for (word i = 0; i < n; i += 777) ASSERT_EQ(to[i], round + word(rank()) + i + 11);
  }
}

TEST(coherence, TheWrappersStageAndNothingFaults) {
  constexpr int n = 20000;  // too few words for direct copies
  const hpe::array<word> from(n);
  const hpe::array<word> to(n);
  hpe::launch(test_kernel().fill, hpe::grid(1), {from.data(), n, 1}, hpe::out(from));
  hpe::launch(test_kernel().fill, hpe::grid(1), {to.data(), n, 1}, hpe::out(to));
  hpeSynchronize();
  hpeResetStatistics();
  MPI_Sendrecv(from.data(), n, MPI_UINT32_T, next_rank(), 0, to.data(), n, MPI_UINT32_T, previous_rank(), 0, world,
               MPI_STATUS_IGNORE);
  hpeSynchronize();
  EXPECT_EQ(statistics().faults_read + statistics().faults_write, 0U);
  EXPECT_EQ(statistics().bytes_to_host, n * sizeof(word));
  EXPECT_EQ(statistics().bytes_to_device, n * sizeof(word));
}

// A halo exchange: messages arrive at both ends of an array while a kernel uses other bytes in the same blocks of hpe
// memory.
TEST(coherence, TheInsideIsComputedWhileTheEdgesArrive) {
  constexpr int edge = 100;
  const hpe::array<word> field(n);
  hpe::launch(test_kernel().fill, hpe::grid(1), {field.data(), n, 0}, hpe::out(field));
  for (word round = 1; round <= 10; ++round) {
    std::array<MPI_Request, 4> r{};
    MPI_Irecv(field.data(), edge, MPI_UINT32_T, previous_rank(), 0, world, &r[0]);
    MPI_Irecv(field.data() + n - edge, edge, MPI_UINT32_T, next_rank(), 1, world, &r[1]);
    MPI_Isend(field.data() + n - 2 * edge, edge, MPI_UINT32_T, next_rank(), 0, world, &r[2]);
    MPI_Isend(field.data() + edge, edge, MPI_UINT32_T, previous_rank(), 1, world, &r[3]);
    const auto inside = field.subspan(2 * edge, n - 4 * edge);
    hpe::launch(test_kernel().increment, hpe::grid(1), {inside.data(), inside.size(), 1, 500}, hpe::inout(inside));
    if (round % 2 == 0) field[n / 2] += 1;  // the host also uses one of these blocks
    MPI_Waitall(4, r.data(), MPI_STATUSES_IGNORE);
    hpe::launch(test_kernel().increment, hpe::grid(1), {field.data(), n, 3, 0}, hpe::inout(field));
  }
  // Only the last kernel of each round changes the words next to the edges. The neighbours have received copies of
  // these words.
  for (int i = 0; i < edge; ++i) {
    ASSERT_EQ(field[edge + i], word(edge + i) + 30);
    ASSERT_EQ(field[i], word(n - 2 * edge + i) + 30);
    ASSERT_EQ(field[n - edge + i], word(edge + i) + 30);
  }
  ASSERT_EQ(field[n / 2], word(n / 2) + 45);
  ASSERT_EQ(field[n / 2 + 1], word(n / 2 + 1) + 40);
}

TEST(coherence, SeveralThreadsOfARank) {
  int provided = MPI_THREAD_SINGLE;
  MPI_Query_thread(&provided);
  if (provided < MPI_THREAD_MULTIPLE) GTEST_SKIP() << "this MPI library does not support MPI_THREAD_MULTIPLE";
  constexpr int threads = 4;
  constexpr word each = 1001;
  const hpe::array<word> from(threads * each);
  const hpe::array<word> to(threads * each);
  std::atomic<int> wrong{0};
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      const auto mine = from.subspan(t * each, each);
      const auto theirs = to.subspan(t * each, each);
      for (word round = 0; round < 10; ++round) {
        const word value = 1000 * word(t) + round;
        hpe::launch(test_kernel().fill, hpe::grid(1), {mine.data(), each, value + word(rank())}, hpe::out(mine));
        std::array<MPI_Request, 2> r{};
        MPI_Irecv(theirs.data(), each, MPI_UINT32_T, previous_rank(), t, world, &r[0]);
        MPI_Isend(mine.data(), each, MPI_UINT32_T, next_rank(), t, world, &r[1]);
        MPI_Wait(&r[0], MPI_STATUS_IGNORE);
        MPI_Wait(&r[1], MPI_STATUS_IGNORE);
        for (word i = 0; i < each; ++i) wrong += theirs[i] != value + word(previous_rank()) + i;
      }
    });
  for (std::thread& t : all) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(coherence, ManySmallReceivesIntoOneBlock) {
  constexpr int many = 64;
  constexpr int each = 5;
  const hpe::array<word> block(many * each * 2);
  for (word round = 1; round <= 5; ++round) {
    hpe::launch(test_kernel().fill, hpe::grid(1), {block.data(), block.size(), round}, hpe::out(block));
    std::vector<MPI_Request> requests(many);
    for (int i = 0; i < many; ++i)
      MPI_Irecv(block.data() + 2 * i * each, each, MPI_UINT32_T, previous_rank(), i, world, &requests[i]);
    for (int i = many - 1; i >= 0; --i) {
      std::array<word, each> out{};
      out.fill(word(i) + 1000 * round);
      MPI_Send(out.data(), each, MPI_UINT32_T, next_rank(), i, world);
      block[(2 * i + 1) * each] += 1;  // the host writes a word between two received messages
    }
    MPI_Waitall(many, requests.data(), MPI_STATUSES_IGNORE);
    for (int i = 0; i < many; ++i) {
      for (int k = 0; k < each; ++k) ASSERT_EQ(block[2 * i * each + k], word(i) + 1000 * round);
      ASSERT_EQ(block[(2 * i + 1) * each], round + word((2 * i + 1) * each) + 1);
      ASSERT_EQ(block[(2 * i + 1) * each + 1], round + word((2 * i + 1) * each) + 1);
    }
  }
}

}  // namespace
