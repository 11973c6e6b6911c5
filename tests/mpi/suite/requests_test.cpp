// Tests every function that completes a request. The ranks are not synchronised: a neighbour may already run the next
// test, and its messages may match receives of this test. So a receive that must get no message has a tag that no other
// test uses.
#include <atomic>
#include <thread>

#include "tests/mpi/ranks.h"

namespace {

constexpr int n = 500;
constexpr int parts = 4;
constexpr int tag_of_nobody = 30077;
const MPI_Comm world = MPI_COMM_WORLD;
using request_array = std::array<MPI_Request, 2 * parts>;

// Starts a receive and a send for all parts except the last one. The last two requests in the returned array are null.
request_array start(buffers b) {
  request_array requests;
  requests.fill(MPI_REQUEST_NULL);
  for (int p = 0; p < parts - 1; ++p) {
    MPI_Irecv(b.receive + p * n, n, MPI_UINT32_T, previous_rank(), p, world, &requests[2 * p]);
    MPI_Isend(b.send + p * n, n, MPI_UINT32_T, next_rank(), p, world, &requests[2 * p + 1]);
  }
  return requests;
}

// Checks the status of request number `index` in the array that start() has returned. Does nothing for a send, whose
// status contains nothing to check.
void expect_right(const MPI_Status& status, int index) {
  if (index % 2 != 0) return;
  int count = 0;
  MPI_Get_count(&status, MPI_UINT32_T, &count);
  EXPECT_EQ(count, n);
  EXPECT_EQ(status.MPI_TAG, index / 2);
  EXPECT_EQ(status.MPI_SOURCE, previous_rank());
}

template <class Finish>
void finished_by(Finish&& finish) {
  same_as_on_host(parts * n, parts * n, [&](buffers b) {
    request_array requests = start(b);
    finish(requests);
    for (const MPI_Request r : requests) EXPECT_EQ(r, MPI_REQUEST_NULL);
  });
}

TEST(requests, WaitAndTest) {
  finished_by([](request_array& requests) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      int flag = 0;
      if (i % 2 == 0) {
        MPI_Status status;
        MPI_Wait(&requests[i], &status);
      } else {
        while (flag == 0) MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE);
      }
    }
  });
  finished_by([](request_array& requests) {
    for (int i = 0; i < 2 * (parts - 1); ++i) {
      MPI_Status status{};
      int flag = 0;
      if (i % 4 == 0) MPI_Wait(&requests[std::size_t(i)], &status);
      while (i % 4 != 0 && flag == 0) MPI_Test(&requests[std::size_t(i)], &flag, &status);
      expect_right(status, i);
    }
  });
}

TEST(requests, WaitallAndTestall) {
  finished_by([](request_array& r) { MPI_Waitall(int(r.size()), r.data(), MPI_STATUSES_IGNORE); });
  finished_by([](request_array& r) {
    std::array<MPI_Status, 2 * parts> statuses;
    MPI_Waitall(int(r.size()), r.data(), statuses.data());
    int count = 0;
    MPI_Get_count(&statuses[0], MPI_UINT32_T, &count);
    EXPECT_EQ(count, n);
  });
  finished_by([](request_array& r) {
    for (int flag = 0; flag == 0;) MPI_Testall(int(r.size()), r.data(), &flag, MPI_STATUSES_IGNORE);
  });
}

TEST(requests, WaitanyAndTestany) {
  finished_by([](request_array& r) {
    for (int index = 0; index != MPI_UNDEFINED;) MPI_Waitany(int(r.size()), r.data(), &index, MPI_STATUS_IGNORE);
  });
  finished_by([](request_array& r) {
    for (int index = 0, flag = 0; flag == 0 || index != MPI_UNDEFINED;)
      MPI_Testany(int(r.size()), r.data(), &index, &flag, MPI_STATUS_IGNORE);
  });
  finished_by([](request_array& r) {
    for (int index = 0, round = 0; index != MPI_UNDEFINED; ++round) {
      MPI_Status status{};
      int flag = 0;
      if (round % 4 < 2) MPI_Waitany(int(r.size()), r.data(), &index, &status);
      while (round % 4 >= 2 && flag == 0) MPI_Testany(int(r.size()), r.data(), &index, &flag, &status);
      if (index != MPI_UNDEFINED) expect_right(status, index);
    }
  });
}

TEST(requests, WaitsomeAndTestsome) {
  finished_by([](request_array& r) {
    std::array<int, 2 * parts> indices{};
    for (int done = 0; done != MPI_UNDEFINED;)
      MPI_Waitsome(int(r.size()), r.data(), &done, indices.data(), MPI_STATUSES_IGNORE);
  });
  finished_by([](request_array& r) {
    std::array<int, 2 * parts> indices{};
    std::array<MPI_Status, 2 * parts> statuses;
    for (int done = 0; done != MPI_UNDEFINED;) {
      MPI_Testsome(int(r.size()), r.data(), &done, indices.data(), statuses.data());
      for (int k = 0; k < done; ++k) expect_right(statuses[std::size_t(k)], indices[std::size_t(k)]);
    }
  });
}

TEST(requests, WhatRequestGetStatusSaysIsThere) {
  same_as_on_host(n, n, [&](buffers b) {
    MPI_Request request;
    MPI_Irecv(b.receive, n, MPI_UINT32_T, previous_rank(), 0, world, &request);
    MPI_Send(b.send, n, MPI_UINT32_T, next_rank(), 0, world);
    for (int flag = 0; flag == 0;) MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
    word sum = 0;
    for (int i = 0; i < n; ++i) sum += b.receive[i];
    b.receive[0] = sum;  // MPI_Wait must not overwrite this word
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  });
}

TEST(requests, StartallAndPersistentInEveryWait) {
  same_as_on_host(n, n, [&](buffers b) {
    std::array<MPI_Request, 2> requests{};
    MPI_Recv_init(b.receive, n, MPI_UINT32_T, previous_rank(), 0, world, &requests[0]);
    MPI_Send_init(b.send, n, MPI_UINT32_T, next_rank(), 0, world, &requests[1]);
    for (int round = 0; round < 4; ++round) {
      b.send[round] += 1;
      MPI_Startall(2, requests.data());
      int index = 0;
      int done = 0;
      std::array<int, 2> indices{};
      switch (round) {
        case 0: MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE); break;
        case 1:
          while (index != MPI_UNDEFINED) MPI_Waitany(2, requests.data(), &index, MPI_STATUS_IGNORE);
          break;
        case 2:
          while (done != MPI_UNDEFINED) MPI_Waitsome(2, requests.data(), &done, indices.data(), MPI_STATUSES_IGNORE);
          break;
        default:
          MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
          MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
          MPI_Wait(&requests[1], MPI_STATUS_IGNORE);  // must return at once, because the request is not active
      }
      b.receive[n / 2 + round] = 0;
    }
    for (MPI_Request& r : requests) MPI_Request_free(&r);
  });
}

TEST(requests, AReceiveWhoseRequestWasFreedArrives) {
  same_as_on_host(n, n, [&](buffers b) {
    MPI_Request request;
    MPI_Irecv(b.receive, n, MPI_UINT32_T, previous_rank(), 0, world, &request);
    MPI_Request_free(&request);
    EXPECT_EQ(request, MPI_REQUEST_NULL);
    MPI_Barrier(world);
    MPI_Request send;
    MPI_Isend(b.send, n, MPI_UINT32_T, next_rank(), 0, world, &send);
    MPI_Request_free(&send);
    // When this later message has arrived, the earlier message has arrived, too.
    word token = 0;
    MPI_Request last;
    MPI_Isend(&token, 1, MPI_UINT32_T, next_rank(), 1, world, &last);
    MPI_Recv(&token, 1, MPI_UINT32_T, previous_rank(), 1, world, MPI_STATUS_IGNORE);
    MPI_Wait(&last, MPI_STATUS_IGNORE);
  });
}

TEST(requests, ACancelledReceiveWritesNothing) {
  same_as_on_host(n, n, [&](buffers b) {
    MPI_Request request;
    MPI_Irecv(b.receive, n, MPI_UINT32_T, previous_rank(), tag_of_nobody, world, &request);
    MPI_Cancel(&request);
    MPI_Status status;
    MPI_Wait(&request, &status);
    int cancelled = 0;
    MPI_Test_cancelled(&status, &cancelled);
    EXPECT_EQ(cancelled, 1);
  });
}

TEST(requests, ManyAtOnceOnBothKindsOfMemory) {
  constexpr int many = 100;
  const hpe::array<word> a(many * 10);
  std::vector<word> h(many * 10);
  std::vector<MPI_Request> requests(2 * many);
  for (int i = 0; i < many; ++i) {
    word* const to = i % 2 == 0 ? a.data() : h.data();
    MPI_Irecv(to + i * 10, 10, MPI_UINT32_T, previous_rank(), i, world, &requests[2 * i]);
  }
  std::vector<std::array<word, 10>> sent(many);
  for (int i = 0; i < many; ++i) {
    sent[i].fill(word(i * 100 + rank()));
    MPI_Isend(sent[i].data(), 10, MPI_UINT32_T, next_rank(), i, world, &requests[2 * i + 1]);
  }
  MPI_Waitall(2 * many, requests.data(), MPI_STATUSES_IGNORE);
  for (int i = 0; i < many; ++i)
    for (int k = 0; k < 10; ++k)
      ASSERT_EQ((i % 2 == 0 ? a.data() : h.data())[i * 10 + k], word(i * 100 + previous_rank()));
}

}  // namespace

// MPI may reuse the handle of a request before the thread that waits for this request has returned. The test keeps the
// first thread in MPI during this time by a generalised request, whose callback waits for the second thread.
struct second_thread {
  std::atomic<int> step{0};  // 1: MPI has freed the first request; 2: the second thread has waited for its own

  static int query(void* state, MPI_Status* status) {
    auto& self = *static_cast<second_thread*>(state);
    self.step = 1;
    while (self.step != 2) std::this_thread::yield();
    MPI_Status_set_elements(status, MPI_BYTE, 0);
    MPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
  }
  static int free(void*) { return MPI_SUCCESS; }
  static int cancel(void*, int) { return MPI_SUCCESS; }
};

TEST(requests, AHandleThatAnotherThreadGetsNext) {
  if (is_mpich) GTEST_SKIP() << "MPICH calls the query function while no other thread can call MPI";
  int provided = MPI_THREAD_SINGLE;
  MPI_Query_thread(&provided);
  if (provided < MPI_THREAD_MULTIPLE) GTEST_SKIP() << "this MPI library does not support MPI_THREAD_MULTIPLE";
  constexpr std::size_t words = 20;
  const auto sent = random_bytes(words);
  for (int round = 0; round < 3; ++round) {
    const device_bytes to(random_bytes(words), owner::device);
    std::vector<std::byte> expected(sent.size());
    second_thread other;
    std::array<MPI_Request, 2> r{};
    MPI_Irecv(to.data(), int(words), MPI_UINT32_T, previous_rank(), 1, world, &r[0]);
    MPI_Grequest_start(second_thread::query, second_thread::free, second_thread::cancel, &other, &r[1]);
    const MPI_Request first = r[0];
    bool same = false;
    std::thread second([&] {
      word got = 0;
      while (other.step != 1) std::this_thread::yield();
      MPI_Request mine;
      MPI_Irecv(&got, 1, MPI_UINT32_T, previous_rank(), 2, world, &mine);
      same = mine == first;
      MPI_Wait(&mine, MPI_STATUS_IGNORE);
      other.step = 2;
    });
    MPI_Sendrecv(sent.data(), int(words), MPI_UINT32_T, next_rank(), 3, expected.data(), int(words), MPI_UINT32_T,
                 previous_rank(), 3, world, MPI_STATUS_IGNORE);
    MPI_Send(sent.data(), int(words), MPI_UINT32_T, next_rank(), 1, world);
    MPI_Send(sent.data(), 1, MPI_UINT32_T, next_rank(), 2, world);
    MPI_Grequest_complete(r[1]);
    MPI_Waitall(2, r.data(), MPI_STATUSES_IGNORE);
    second.join();
    EXPECT_TRUE(equal(to.content(), expected)) << (same ? "the same handle" : "another handle");
  }
}

// One thread probes while others receive. The messages are as long as an envelope, so hpe takes them, and the messages
// before them, out of MPI (interpose/mpi/messages/set_aside.h).
TEST(requests, ProbesOfOneThreadBesideReceivesOfOthers) {
  int provided = MPI_THREAD_SINGLE;
  MPI_Query_thread(&provided);
  if (provided < MPI_THREAD_MULTIPLE) GTEST_SKIP() << "this MPI library does not support MPI_THREAD_MULTIPLE";
  constexpr int rounds = 2000;
  constexpr int words = 2032 / sizeof(word);
  using message = std::array<word, words>;
  std::atomic<int> wrong{0};
  const auto receive = [&](int tag, int round, int by) {
    message got{};
    MPI_Request request;
    if (by == 0) MPI_Recv(got.data(), words, MPI_UINT32_T, previous_rank(), tag, world, MPI_STATUS_IGNORE);
    if (by == 1) {
      MPI_Irecv(got.data(), words, MPI_UINT32_T, previous_rank(), tag, world, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (by == 2) {
      message none{};
      MPI_Sendrecv(none.data(), 1, MPI_UINT32_T, MPI_PROC_NULL, tag, got.data(), words, MPI_UINT32_T, previous_rank(),
                   tag, world, MPI_STATUS_IGNORE);
    }
    if (got.front() != word(round) || got.back() != word(tag)) ++wrong;
  };
  std::thread sends([&] {
    message out{};
    for (int round = 0; round < rounds; ++round)
      for (int tag = 1; tag <= 3; ++tag) {
        out.front() = word(round);
        out.back() = word(tag);
        MPI_Send(out.data(), words, MPI_UINT32_T, next_rank(), tag, world);
      }
  });
  std::thread receives([&] {
    for (int round = 0; round < rounds; ++round) receive(2, round, round % 3);
  });
  std::thread probes([&] {
    for (int round = 0; round < rounds; ++round) {
      MPI_Probe(previous_rank(), 3, world, MPI_STATUS_IGNORE);
      receive(3, round, 0);
    }
  });
  for (int round = 0; round < rounds; ++round) {
    int there = 0;
    MPI_Iprobe(previous_rank(), MPI_ANY_TAG, world, &there, MPI_STATUS_IGNORE);
    MPI_Probe(previous_rank(), 1, world, MPI_STATUS_IGNORE);
    receive(1, round, 0);
  }
  sends.join();
  receives.join();
  probes.join();
  EXPECT_EQ(wrong, 0);
}
