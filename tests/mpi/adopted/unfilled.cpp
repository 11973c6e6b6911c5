// Receives with more room than their messages have bytes: the other bytes stay as they were, although a sender copies
// into announced receives before MPI has matched its message.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

#include "tests/mpi/adopted/adopted.h"

namespace adopted {

namespace {

constexpr std::size_t room = 5000;
// Senders do not wait for the receivers of messages of up to 4096 bytes from device memory, and of 200 bytes from
// ordinary memory.
constexpr std::size_t most = 4000;
constexpr std::size_t few = 200;

// A number in memory that both ranks share: each waits for a step of the other without a call of MPI.
class steps {
 public:
  steps() {
    int owner = static_cast<int>(::getpid());
    MPI_Bcast(&owner, 1, MPI_INT, 0, world);
    const std::string name = "/hpe-test-steps-" + std::to_string(owner);
    if (rank == 1) MPI_Barrier(world);
    const int file = ::shm_open(name.c_str(), O_RDWR | O_CREAT, 0600);
    EXPECT(file >= 0 && ::ftruncate(file, sizeof(std::atomic<int>)) == 0);
    if (rank == 0) MPI_Barrier(world);
    void* const mapped = ::mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    EXPECT(mapped != MAP_FAILED);
    done_ = static_cast<std::atomic<int>*>(mapped);
    ::close(file);
    MPI_Barrier(world);
    if (rank == 0) ::shm_unlink(name.c_str());
  }
  ~steps() { ::munmap(done_, sizeof *done_); }
  steps(const steps&) = delete;
  steps& operator=(const steps&) = delete;

  void next() { done_->store(++mine_); }
  void await_next() {
    ++mine_;
    while (done_->load() < mine_) std::this_thread::yield();
  }

 private:
  std::atomic<int>* done_ = nullptr;
  int mine_ = 0;
};

bytes message(unsigned number, std::size_t count) { return random_bytes(count, seed_of(3, number)); }
const bytes& before() {
  static const bytes all(room, 0x77);
  return all;
}
bytes filled(const bytes& with) {
  bytes result = before();
  std::copy(with.begin(), with.end(), result.begin());
  return result;
}

MPI_Request receive(std::uint8_t* to, std::size_t its_room = room, int its_tag = tag) {
  MPI_Request request;
  MPI_Irecv(to, static_cast<int>(its_room), MPI_BYTE, 0, its_tag, world, &request);
  return request;
}
void send(const std::uint8_t* from, std::size_t count) {
  MPI_Send(from, static_cast<int>(count), MPI_BYTE, 1, tag, world);
}
void send_from_device(const bytes& what) {
  const device_bytes memory(what);
  send(memory.data(), what.size());
}
// Without MPI_Wait, which would show the receiver that the sender waits.
void begin_to_send_from_device(const bytes& what) {
  const device_bytes memory(what);
  MPI_Request request;
  int over = 0;
  MPI_Isend(memory.data(), static_cast<int>(what.size()), MPI_BYTE, 1, tag, world, &request);
  while (over == 0) MPI_Test(&request, &over, MPI_STATUS_IGNORE);
}

// Rank 0 sends after rank 1 has begun its receives, and before rank 1 calls MPI again. After a wrong copy, 64 receives
// are not announced; the messages before the test, one or more, are received in order.
constexpr int forgotten = 65;
template <class Begin, class Send, class Check>
void sent_meanwhile(steps& both, Begin&& begin, Send&& send_all, Check&& check, int before_it = forgotten) {
  {
    const device_bytes memory(room);
    for (int i = 0; i < before_it; ++i) {
      if (rank == 0) send(memory.data(), room);
      if (rank == 1) MPI_Recv(memory.data(), room, MPI_BYTE, 0, tag, world, MPI_STATUS_IGNORE);
    }
  }
  if (rank == 0) {
    both.await_next();
    send_all();
    both.next();
  } else {
    std::vector<MPI_Request> requests;
    const device_bytes first(before());
    const device_bytes second(before());
    EXPECT(cuCtxSynchronize() == CUDA_SUCCESS);
    begin(requests, first, second);
    both.next();
    both.await_next();
    for (MPI_Request& r : requests) MPI_Wait(&r, MPI_STATUS_IGNORE);
    check(first, second);
  }
  MPI_Barrier(world);
}

// Both receives are announced.
void receive_both(std::vector<MPI_Request>& requests, const device_bytes& first, const device_bytes& second) {
  requests = {receive(first.data()), receive(second.data())};
}

// The copy of a message into its announced receive, which shows that the tests announce their receives. The sender
// withdraws the offer after the copy, because the receiver does not call MPI.
void is_copied_ahead(steps& both, int before_it = forgotten) {
  const auto begins = [](auto& requests, const device_bytes& first, const device_bytes&) {
    requests = {receive(first.data())};
  };
  sent_meanwhile(
      both,
      [&](auto& requests, const device_bytes& first, const device_bytes& second) {
        begins(requests, first, second);
        both.next();
        both.await_next();
        const auto* const there = static_cast<const std::uint8_t*>(
            of_stand_in<stand_in::memory_function>("stand_in_memory")(first.address()));
        if (direct()) EXPECT(std::ranges::equal(message(1, most), bytes(there, there + most)));
      },
      [&] {
        send_from_device(message(1, most));
        both.next();
        both.await_next();
      },
      [](const device_bytes& first, const device_bytes&) { EXPECT(first.get() == filled(message(1, most))); },
      before_it);
}

void after_a_withdrawn_message(steps& both) {
  sent_meanwhile(
      both, receive_both,
      [] {
        begin_to_send_from_device(message(2, few));
        send_from_device(message(3, most));
      },
      [](const device_bytes& first, const device_bytes& second) {
        EXPECT(first.get() == filled(message(2, few)));
        EXPECT(second.get() == filled(message(3, most)));
      });
}

// A persistent send that is started again while the message of its first start is still to be received.
void after_withdrawn_starts(steps& both) {
  sent_meanwhile(
      both, receive_both,
      [] {
        const device_bytes memory(message(4, few));
        MPI_Request request;
        MPI_Send_init(memory.data(), few, MPI_BYTE, 1, tag, world, &request);
        for (unsigned start = 0; start < 2; ++start) {
          int over = 0;
          memory.put(message(4 + start, few));
          MPI_Start(&request);
          while (over == 0) MPI_Test(&request, &over, MPI_STATUS_IGNORE);
        }
        MPI_Request_free(&request);
        begin_to_send_from_device(message(6, most));
        send_from_device(message(7, most));
      },
      [](const device_bytes& first, const device_bytes& second) {
        EXPECT(first.get() == filled(message(4, few)));
        EXPECT(second.get() == filled(message(5, few)));
        const device_bytes rest(room);
        for (unsigned m = 6; m < 8; ++m) {
          rest.put(before());
          MPI_Recv(rest.data(), room, MPI_BYTE, 0, tag, world, MPI_STATUS_IGNORE);
          EXPECT(rest.get() == filled(message(m, most)));
        }
      });
}

// MPI itself sends messages from ordinary memory, also those of persistent sends.
void after_ordinary_memory(steps& both) {
  const bytes host = message(8, few);
  for (const bool persistent : {false, true}) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (persistent && rank == 0) MPI_Send_init(host.data(), few, MPI_BYTE, 1, tag, world, &request);
    sent_meanwhile(
        both, receive_both,
        [&] {
          if (persistent) MPI_Start(&request);
          if (!persistent) send(host.data(), few);
          send_from_device(message(9, most));
        },
        [](const device_bytes& first, const device_bytes& second) {
          EXPECT(first.get() == filled(message(8, few)));
          EXPECT(second.get() == filled(message(9, most)));
        });
    if (request == MPI_REQUEST_NULL) continue;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
  }
}

// A receive that is not announced precedes the announced one: in ordinary memory, or with a wildcard.
void behind_others(steps& both) {
  bytes host = before();
  for (const bool of_any_tag : {false, true})
    sent_meanwhile(
        both,
        [&](auto& requests, const device_bytes& first, const device_bytes& second) {
          requests = {of_any_tag ? receive(first.data(), room, MPI_ANY_TAG) : receive(host.data()),
                      receive(second.data())};
        },
        [] {
          send_from_device(message(10, most));
          begin_to_send_from_device(message(11, few));
        },
        [&](const device_bytes& first, const device_bytes& second) {
          EXPECT((of_any_tag ? first.get() : host) == filled(message(10, most)));
          EXPECT(second.get() == filled(message(11, few)));
        });
}

// The first receive is too short for the message, which is an error; the second one gets the next message.
void behind_a_short_one(steps& both) {
  sent_meanwhile(
      both,
      [&](auto& requests, const device_bytes& first, const device_bytes& second) {
        requests = {receive(first.data(), few), receive(second.data())};
      },
      [] {
        send_from_device(message(12, most));
        begin_to_send_from_device(message(13, few));
      },
      [](const device_bytes& first, const device_bytes& second) {
        const bytes got = first.get();
        EXPECT(std::equal(got.begin() + few, got.end(), before().begin() + few));
        EXPECT(second.get() == filled(message(13, few)));
      });
}

// A cancelled receive leaves its buffer as it was, and its message to the next receive; or it is not cancelled.
void cancelled(steps& both) {
  MPI_Request request = MPI_REQUEST_NULL;
  sent_meanwhile(
      both, [&](auto&, const device_bytes& first, const device_bytes&) { request = receive(first.data()); },
      [] { send_from_device(message(14, most)); },
      [&](const device_bytes& first, const device_bytes& second) {
        MPI_Status status;
        int is_cancelled = 0;
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &is_cancelled);
        if (is_cancelled != 0) MPI_Recv(second.data(), room, MPI_BYTE, 0, tag, world, MPI_STATUS_IGNORE);
        EXPECT(first.get() == (is_cancelled != 0 ? before() : filled(message(14, most))));
        EXPECT(second.get() == (is_cancelled != 0 ? filled(message(14, most)) : before()));
      });
}

}  // namespace

void unfilled_receives() {
  steps both;
  is_copied_ahead(both);
  is_copied_ahead(both, 1);  // the copy was no mistake
  after_a_withdrawn_message(both);
  after_withdrawn_starts(both);
  is_copied_ahead(both);
  behind_others(both);
  behind_a_short_one(both);
  cancelled(both);
  is_copied_ahead(both);
  after_ordinary_memory(both);
}

}  // namespace adopted
