// Tests windows in hpe memory or memory of the CUDA driver, and one-sided calls with buffers in this memory.
#include "tests/mpi/ranks.h"
#include "tests/mpi/suite/large_messages.h"

namespace {

using large_messages_tests::whole_messages;

constexpr int n = 2000;  // words of a window
const MPI_Comm world = MPI_COMM_WORLD;
const MPI_Datatype type = MPI_UINT32_T;

// Creates a window over ordinary memory and returns the result of MPI_Win_create. Open MPI 4.1 cannot create windows in
// programs with threads if ranks cannot access each other's memory (no CMA). mpi.windows runs these tests without
// threads.
int make_a_window() {
  MPI_Errhandler usual = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(world, &usual);
  MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  std::vector<word> memory(n);
  MPI_Win win = MPI_WIN_NULL;
  const int result = MPI_Win_create(memory.data(), n * sizeof(word), sizeof(word), MPI_INFO_NULL, world, &win);
  if (result == MPI_SUCCESS) MPI_Win_free(&win);
  MPI_Comm_set_errhandler(world, usual);
  MPI_Errhandler_free(&usual);
  return result;
}

class one_sided : public testing::Test {
 protected:
  void SetUp() override {
    static const int answer = make_a_window();
    if (answer != MPI_SUCCESS) GTEST_SKIP() << "this MPI library cannot create windows over ordinary memory here";
  }
};

// Runs calls(buffers, window) as same_as_on_host() does; the window of each rank is its buffer `receive`.
template <class Calls>
void with_window(std::size_t send, Calls&& calls) {
  same_as_on_host(send, n, [&](buffers b) {
    MPI_Win win = MPI_WIN_NULL;
    ASSERT_EQ(MPI_Win_create(b.receive, n * sizeof(word), sizeof(word), MPI_INFO_NULL, world, &win), MPI_SUCCESS);
    calls(b, win);
    MPI_Win_free(&win);
  });
}

TEST_F(one_sided, PutAndGetBetweenFences) {
  with_window(n, [&](buffers b, MPI_Win win) {
    MPI_Win_fence(0, win);
    MPI_Put(b.send, 100, type, next_rank(), 10, 100, type, win);
    const word other = ~word{0};  // all bytes of the word change, including the last byte of the window
    MPI_Put(&other, 1, type, next_rank(), n - 1, 1, type, win);
    MPI_Win_fence(0, win);
    MPI_Get(b.send + 500, 300, type, previous_rank(), 0, 300, type, win);
    MPI_Win_fence(0, win);
    b.receive[1] = 77;  // other ranks must see this write of the owner after the next fence
    MPI_Win_fence(0, win);
    MPI_Get(b.send + 900, 3, type, next_rank(), 0, 3, type, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  });
}

TEST_F(one_sided, AccumulateAndItsRelatives) {
  with_window(n, [&](buffers b, MPI_Win win) {
    MPI_Win_fence(0, win);
    MPI_Accumulate(b.send, 50, type, next_rank(), 0, 50, type, MPI_SUM, win);
    MPI_Win_fence(0, win);
    MPI_Get_accumulate(b.send, 50, type, b.send + 100, 50, type, next_rank(), 60, 50, type, MPI_SUM, win);
    MPI_Win_fence(0, win);
    MPI_Fetch_and_op(b.send, b.send + 200, type, next_rank(), 5, MPI_SUM, win);
    MPI_Win_fence(0, win);
    b.send[300] = b.send[200];  // the comparison may succeed or fail
    MPI_Compare_and_swap(b.send + 1, b.send + 300, b.send + 301, type, next_rank(), 5, win);
    MPI_Win_fence(0, win);
  });
}

TEST_F(one_sided, WithRequestsOfTheirOwn) {
  with_window(n, [&](buffers b, MPI_Win win) {
    MPI_Win_lock_all(0, win);
    std::array<MPI_Request, 2> requests{};
    MPI_Rput(b.send, 100, type, next_rank(), 0, 100, type, win, &requests[0]);
    MPI_Raccumulate(b.send, 100, type, next_rank(), 200, 100, type, MPI_SUM, win, &requests[1]);
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    MPI_Win_flush_all(win);
    MPI_Barrier(world);
    MPI_Rget(b.send + 500, 100, type, next_rank(), 0, 100, type, win, &requests[0]);
    MPI_Rget_accumulate(b.send, 10, type, b.send + 700, 10, type, next_rank(), 300, 10, type, MPI_SUM, win,
                        &requests[1]);
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    MPI_Win_unlock_all(win);
    MPI_Barrier(world);
  });
}

TEST_F(one_sided, WhatAFlushFinishesIsThere) {
  with_window(n, [&](buffers b, MPI_Win win) {
    MPI_Win_lock_all(0, win);
    MPI_Get(b.send, 10, type, next_rank(), 0, 10, type, win);
    MPI_Win_flush(next_rank(), win);
    word sum = 0;
    for (int i = 0; i < 10; ++i) sum += b.send[i];
    b.send[20] = sum;
    MPI_Request request;
    MPI_Rget(b.send + 30, 10, type, next_rank(), 0, 10, type, win, &request);
    MPI_Win_flush_local_all(win);
    b.send[30] += 5;  // MPI_Wait must not overwrite this word
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_unlock_all(win);
  });
}

TEST_F(one_sided, LocksOfOneTarget) {
  with_window(n, [&](buffers b, MPI_Win win) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next_rank(), 0, win);
    MPI_Put(b.send, 20, type, next_rank(), 100, 20, type, win);
    MPI_Win_unlock(next_rank(), win);
    MPI_Barrier(world);
    MPI_Win_lock(MPI_LOCK_SHARED, rank(), 0, win);
    // The owner must see the new values when it has locked its own window.
    b.send[50] = b.receive[100] + b.receive[119];
    b.receive[0] = 123;
    MPI_Win_unlock(rank(), win);
    MPI_Barrier(world);
    MPI_Win_lock(MPI_LOCK_SHARED, next_rank(), 0, win);
    MPI_Get(b.send + 60, 2, type, next_rank(), 0, 2, type, win);
    MPI_Win_unlock(next_rank(), win);
    MPI_Barrier(world);
  });
}

TEST_F(one_sided, PostStartCompleteWait) {
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Comm_group(world, &all);
  const std::array<int, 1> to{next_rank()};
  const std::array<int, 1> from{previous_rank()};
  MPI_Group targets = MPI_GROUP_NULL;
  MPI_Group origins = MPI_GROUP_NULL;
  MPI_Group_incl(all, 1, to.data(), &targets);
  MPI_Group_incl(all, 1, from.data(), &origins);
  with_window(n, [&](buffers b, MPI_Win win) {
    for (const bool polled : {false, true}) {
      b.receive[7] += 1;
      MPI_Win_post(origins, 0, win);
      MPI_Win_start(targets, 0, win);
      MPI_Put(b.send, 5, type, next_rank(), polled ? 100 : 200, 5, type, win);
      MPI_Get(b.send + 10, 8, type, next_rank(), 0, 8, type, win);
      MPI_Win_complete(win);
      if (polled) {
        for (int flag = 0; flag == 0;) MPI_Win_test(win, &flag);
      } else {
        MPI_Win_wait(win);
      }
    }
  });
  MPI_Group_free(&targets);
  MPI_Group_free(&origins);
  MPI_Group_free(&all);
}

TEST_F(one_sided, KernelsOnBothSides) {
  const hpe::array<word> memory(n);
  hpe::launch(test_kernel().fill, hpe::grid(1), {memory.data(), n, word(1000 * rank())}, hpe::out(memory));
  MPI_Win win = MPI_WIN_NULL;
  MPI_Win_create(memory.data(), n * sizeof(word), sizeof(word), MPI_INFO_NULL, world, &win);
  for (word round = 1; round <= 3; ++round) {
    // This kernel may run until after this rank has called MPI_Win_fence.
    hpe::launch(test_kernel().increment, hpe::grid(1), {memory.data(), 10, 1, 20000},
                hpe::inout(memory.subspan(0, 10)));
    MPI_Win_fence(0, win);
    const hpe::array<word> got(10);
    MPI_Get(got.data(), 10, type, next_rank(), 0, 10, type, win);
    MPI_Put(got.data() + 9, 0, type, next_rank(), 0, 0, type, win);
    MPI_Win_fence(0, win);
    for (word i = 0; i < 10; ++i) ASSERT_EQ(got[i], 1000 * word(next_rank()) + i + round);
    const hpe::array<word> sent(5);
    hpe::launch(test_kernel().fill, hpe::grid(1), {sent.data(), 5, 7 * round}, hpe::out(sent));
    MPI_Put(sent.data(), 5, type, next_rank(), 100, 5, type, win);
    MPI_Win_fence(0, win);
    hpe::launch(test_kernel().increment, hpe::grid(1), {memory.data() + 100, 5, 1, 0},
                hpe::inout(memory.subspan(100, 5)));
    for (word i = 0; i < 5; ++i) ASSERT_EQ(memory[100 + i], 7 * round + i + 1);
    ASSERT_EQ(memory[105], 1000 * word(rank()) + 105);
  }
  MPI_Win_free(&win);
}

TEST_F(one_sided, AWindowTellsTheProgramsAddressAndItsModel) {
  const device_bytes memory(random_bytes(n), owner::device);
  MPI_Win win = MPI_WIN_NULL;
  MPI_Win_create(memory.data(), n * sizeof(word), sizeof(word), MPI_INFO_NULL, world, &win);
  void* base = nullptr;
  int* model = nullptr;
  int flag = 0;
  MPI_Win_get_attr(win, MPI_WIN_BASE, static_cast<void*>(&base), &flag);
  EXPECT_EQ(base, memory.data());
  MPI_Win_get_attr(win, MPI_WIN_MODEL, static_cast<void*>(&model), &flag);
  ASSERT_NE(flag, 0);
  EXPECT_EQ(*model, MPI_WIN_SEPARATE);
  MPI_Win_lock_all(0, win);
  MPI_Win_sync(win);
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
  EXPECT_EQ(win, MPI_WIN_NULL);
}

int told_to_window = 0;
int told_to_world = 0;
void count_window(MPI_Win*, int*, ...) { ++told_to_window; }  // NOLINT(cert-dcl50-cpp): MPI requires variadic handlers
void count_world(MPI_Comm*, int*, ...) { ++told_to_world; }   // NOLINT(cert-dcl50-cpp): MPI requires variadic handlers

// While the window exists, hpe must call the window's error handler.
TEST_F(one_sided, MemoryFreedUnderAWindow) {
  void* p = nullptr;
  ASSERT_EQ(hpeMalloc(&p, n * sizeof(word)), HPE_SUCCESS);
  MPI_Win win = MPI_WIN_NULL;
  ASSERT_EQ(MPI_Win_create(p, n * sizeof(word), sizeof(word), MPI_INFO_NULL, world, &win), MPI_SUCCESS);
  MPI_Errhandler of_window = MPI_ERRHANDLER_NULL;
  MPI_Errhandler of_world = MPI_ERRHANDLER_NULL;
  MPI_Win_create_errhandler(count_window, &of_window);
  MPI_Comm_create_errhandler(count_world, &of_world);
  MPI_Win_set_errhandler(win, of_window);
  MPI_Comm_set_errhandler(world, of_world);
  told_to_window = told_to_world = 0;
  const std::vector<word> sent(10, 5);
  if (rank() == 1) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Put(sent.data(), 10, type, 0, 0, 10, type, win);
    MPI_Win_unlock(0, win);
  }
  MPI_Barrier(world);
  if (rank() == 0) {
    ASSERT_EQ(hpeFree(p), HPE_SUCCESS);
  }
  int kind = MPI_SUCCESS;
  MPI_Error_class(MPI_Win_free(&win), &kind);
  EXPECT_EQ(kind, rank() == 0 ? MPI_ERR_BUFFER : MPI_SUCCESS);
  EXPECT_EQ(win, MPI_WIN_NULL);
  EXPECT_EQ(told_to_window, rank() == 0 ? 1 : 0);
  EXPECT_EQ(told_to_world, 0);
  MPI_Comm_set_errhandler(world, MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&of_window);
  MPI_Errhandler_free(&of_world);
  if (rank() != 0) {
    EXPECT_EQ(hpeFree(p), HPE_SUCCESS);
  }
}

// The addresses of the same variable in all ranks.
std::vector<MPI_Aint> addresses_of(const void* here) {
  MPI_Aint own = 0;
  MPI_Get_address(here, &own);
  std::vector<MPI_Aint> all(static_cast<std::size_t>(ranks()));
  MPI_Allgather(&own, 1, MPI_AINT, all.data(), 1, MPI_AINT, world);
  return all;
}

class one_sided_dynamic : public one_sided {
 protected:
  void SetUp() override {
    one_sided::SetUp();
    if (IsSkipped()) return;
    MPI_Win_create_dynamic(MPI_INFO_NULL, world, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  }
  void TearDown() override {
    if (win != MPI_WIN_NULL) MPI_Win_free(&win);
  }

  MPI_Win win = MPI_WIN_NULL;
};

// Without the protocol, device memory is refused (the last test).
class one_sided_dynamic_device : public one_sided_dynamic {
 protected:
  void SetUp() override {
    one_sided_dynamic::SetUp();
    if (whole_messages()) GTEST_SKIP() << "the job does not use the protocol";
  }
};

TEST_F(one_sided_dynamic_device, MemoryIsUsedByItsAddress) {
  constexpr MPI_Aint word_bytes = sizeof(word);
  const auto next = std::size_t(next_rank());
  const auto previous = std::size_t(previous_rank());
  same_as_on_host(2 * n, n, [&](buffers b) {
    ASSERT_EQ(MPI_Win_attach(win, b.receive, n * word_bytes), MPI_SUCCESS);
    ASSERT_EQ(MPI_Win_attach(win, b.send + n, n * word_bytes), MPI_SUCCESS);
    const auto receive = addresses_of(b.receive);
    const auto second = addresses_of(b.send + n);
    MPI_Win_fence(0, win);
    MPI_Put(b.send, 100, type, next_rank(), receive[next] + 10 * word_bytes, 100, type, win);
    MPI_Accumulate(b.send + 200, 50, type, next_rank(), second[next] + (n - 50) * word_bytes, 50, type, MPI_SUM, win);
    MPI_Win_fence(0, win);
    MPI_Get(b.send + 500, 300, type, previous_rank(), receive[previous], 300, type, win);
    MPI_Win_fence(0, win);
    b.receive[1] = 77;  // other ranks must see this write of the owner after the next fence
    MPI_Win_fence(0, win);
    MPI_Get(b.send + 900, 3, type, next_rank(), receive[next], 3, type, win);
    MPI_Win_fence(0, win);

    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next_rank(), 0, win);
    MPI_Put(b.send + 300, 20, type, next_rank(), receive[next] + (n - 20) * word_bytes, 20, type, win);
    MPI_Win_unlock(next_rank(), win);
    MPI_Barrier(world);
    // The owner synchronises the window, and so sees the bytes of the other rank.
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank(), 0, win);
    MPI_Win_unlock(rank(), win);
    b.send[2] += b.receive[n - 3];
    MPI_Barrier(world);
    MPI_Win_detach(win, b.receive);
    MPI_Win_detach(win, b.send + n);
  });
}

// MPI_Win_detach is the owner's last synchronisation of the memory.
TEST_F(one_sided_dynamic_device, BytesThatArriveBeforeTheEndAreNotLost) {
  same_as_on_host(n, n, [&](buffers b) {
    ASSERT_EQ(MPI_Win_attach(win, b.receive, n * sizeof(word)), MPI_SUCCESS);
    const auto receive = addresses_of(b.receive);
    MPI_Win_lock(MPI_LOCK_SHARED, next_rank(), 0, win);
    MPI_Put(b.send, n, type, next_rank(), receive[std::size_t(next_rank())], n, type, win);
    MPI_Win_unlock(next_rank(), win);
    MPI_Barrier(world);
    MPI_Win_detach(win, b.receive);
  });
}

TEST_F(one_sided_dynamic_device, TakesMemoryAgainWhereOtherMemoryWas) {
  same_as_on_host(n, n, [&](buffers b) {
    for (word round = 0; round < 3; ++round) {
      // Another size, so that the copy that MPI uses has another address in each round.
      const MPI_Aint size = MPI_Aint(n >> round) * MPI_Aint{sizeof(word)};
      ASSERT_EQ(MPI_Win_attach(win, b.receive, size), MPI_SUCCESS);
      const auto receive = addresses_of(b.receive);
      MPI_Win_fence(0, win);
      b.send[0] = round;
      MPI_Put(b.send, 100, type, next_rank(), receive[std::size_t(next_rank())] + MPI_Aint(round), 100, type, win);
      MPI_Win_fence(0, win);
      MPI_Win_detach(win, b.receive);
    }
  });
}

// hpe passes memory from hpeMallocHost itself to MPI, so all ranges are in one page. Open MPI limits the number of
// pages of a window.
TEST_F(one_sided_dynamic_device, RefusesMoreRangesThanItsDirectoryHas) {
  constexpr int most = 128;
  void* memory = nullptr;
  ASSERT_EQ(hpeMallocHost(&memory, n * sizeof(word)), HPE_SUCCESS);
  auto* const words = static_cast<word*>(memory);
  for (int i = 0; i < most; ++i) ASSERT_EQ(MPI_Win_attach(win, words + 2 * i, sizeof(word)), MPI_SUCCESS) << i;
  const int result = MPI_Win_attach(win, words + 2 * most, sizeof(word));
  EXPECT_NE(result, MPI_SUCCESS);
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(result, text.data(), &length);
  EXPECT_NE(std::string(text.data()).find("128 ranges of device memory are attached"), std::string::npos)
      << text.data();
  EXPECT_EQ(MPI_Win_detach(win, words + 2 * 77), MPI_SUCCESS);
  EXPECT_EQ(MPI_Win_attach(win, words + 2 * most, sizeof(word)), MPI_SUCCESS);
  EXPECT_EQ(MPI_Win_free(&win), MPI_SUCCESS);
  EXPECT_EQ(hpeFree(memory), HPE_SUCCESS);
}

TEST_F(one_sided_dynamic_device, MemoryFreedBeforeItIsDetached) {
  auto memory = std::make_optional<device_bytes>(random_bytes(n), owner::device);
  ASSERT_EQ(MPI_Win_attach(win, memory->data(), n * sizeof(word)), MPI_SUCCESS);
  memory.reset();
  int error_class = 0;
  MPI_Error_class(MPI_Win_lock(MPI_LOCK_SHARED, rank(), 0, win), &error_class);
  EXPECT_EQ(error_class, MPI_ERR_BUFFER);
  MPI_Win_unlock(rank(), win);
}

TEST_F(one_sided_dynamic, TakesOrdinaryMemoryAndNoneOfTheDeviceWithoutTheProtocol) {
  std::vector<word> ordinary(n);
  EXPECT_EQ(MPI_Win_attach(win, ordinary.data(), n), MPI_SUCCESS);
  EXPECT_EQ(MPI_Win_detach(win, ordinary.data()), MPI_SUCCESS);
  if (!whole_messages()) return;
  const device_bytes memory(random_bytes(n), owner::device);
  const int result = MPI_Win_attach(win, memory.data(), n);
  ASSERT_NE(result, MPI_SUCCESS);
  int error_class = 0;
  MPI_Error_class(result, &error_class);
  EXPECT_EQ(error_class, MPI_ERR_BUFFER);
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(result, text.data(), &length);
  EXPECT_NE(std::string(text.data()).find("MPI_Win_create"), std::string::npos) << text.data();
}

}  // namespace
