// Tests receives whose buffers are larger than the messages. The remaining bytes of the buffer must not change,
// although a sender copies to the buffer of an advertised receive before MPI has matched its message.
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
// The sizes of messages for which senders do not wait for their receivers: `most` from device memory (the limit is 4096
// bytes), `few` from ordinary memory.
constexpr std::size_t most = 4000;
constexpr std::size_t few = 200;

// A counter in memory that both ranks share. With this counter, a rank waits for a step of the other rank without
// calling MPI.
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
// Calls MPI_Test instead of MPI_Wait, which would tell the receiver that the sender waits.
void begin_to_send_from_device(const bytes& what) {
  const device_bytes memory(what);
  MPI_Request request;
  int over = 0;
  MPI_Isend(memory.data(), static_cast<int>(what.size()), MPI_BYTE, 1, tag, world, &request);
  while (over == 0) MPI_Test(&request, &over, MPI_STATUS_IGNORE);
}

// Rank 0 sends when rank 1 has begun its receives, and before rank 1 calls MPI again. Before this, rank 0 sends
// `before_it` messages, which rank 1 receives in order: after a sender has copied to a wrong receive, hpe does not
// advertise the next 64 receives.
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

// Begins two receives, both of which hpe advertises.
void receive_both(std::vector<MPI_Request>& requests, const device_bytes& first, const device_bytes& second) {
  requests = {receive(first.data()), receive(second.data())};
}

// The sender must copy a message to an advertised receive before the receiver calls MPI. This also shows that hpe
// advertises the receives of these tests. The sender withdraws the offer after the copy, because the receiver does not
// call MPI.
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

// A persistent send is started again before the message of its first start has been received.
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

// Before the message from device memory, MPI itself sends a message from ordinary memory: first with a plain send, then
// with a persistent send.
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

// Before the advertised receive, the receiver begins a receive that hpe does not advertise, because it is in ordinary
// memory or has a wildcard.
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

// The first receive is too short for the message and must return an error. The second receive must get the next
// message.
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

// If MPI cancels a receive, the receive must not change its buffer, and the next receive must get the message. MPI may
// also fail to cancel the receive.
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
  is_copied_ahead(both, 1);  // one message is enough, because the sender did not copy to a wrong receive
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
