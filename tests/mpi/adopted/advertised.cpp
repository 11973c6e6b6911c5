// Tests receives that a rank advertises to a sender (interpose/mpi/messages/board/advertisement_board.h), so that
// blocking sends copy to the receive buffer at once. Each receive must get the message with which MPI matches it, even
// if the sender has copied another message to the buffer.
#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "tests/mpi/adopted/adopted.h"

namespace adopted {

namespace {

constexpr std::size_t count = 5000;
constexpr int n = static_cast<int>(count);

bytes message(unsigned number) { return random_bytes(count, seed_of(2, number)); }

// Sends `times` messages from device memory from rank 0 to rank 1, so that rank 1 advertises later receives to rank 0.
// hpe advertises receives only to ranks that have sent device memory on the same communicator. After a sender has
// claimed a wrong receive, hpe does not advertise the next 64 receives. After a message from ordinary memory, the
// sender claims no receive until a receive has matched a later message from device memory with the same tag.
void meet(MPI_Comm comm, int times = 1) {
  const device_bytes memory(count);
  for (int i = 0; i < times; ++i) {
    if (rank == 0) MPI_Send(memory.data(), n, MPI_BYTE, 1, tag, comm);
    if (rank == 1) MPI_Recv(memory.data(), n, MPI_BYTE, 0, tag, comm, MPI_STATUS_IGNORE);
  }
}
constexpr int forgotten = 65;

// Waits for the program's work on the device, because hpe advertises no receive while this work runs.
void finish_work() { EXPECT(cuCtxSynchronize() == CUDA_SUCCESS); }

// Rank 1 calls begin() to start receives; when all receives have begun, rank 0 calls send(). Rank 1 then calls check().
template <class Begin, class Send, class Check>
void after_receives(Begin&& begin, Send&& send, Check&& check) {
  std::vector<MPI_Request> requests;
  finish_work();
  if (rank == 1) begin(requests);
  MPI_Barrier(world);
  if (rank == 0) send();
  if (rank == 1) {
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    check();
  }
  MPI_Barrier(world);
}

MPI_Request receive(std::uint8_t* to, int its_tag, MPI_Comm comm = world) {
  MPI_Request request;
  MPI_Irecv(to, n, MPI_BYTE, 0, its_tag, comm, &request);
  return request;
}

void send_from_host(unsigned number, int its_tag) {
  const bytes host = message(number);
  MPI_Send(host.data(), n, MPI_BYTE, 1, its_tag, world);
}
void send_from_device(unsigned number, int its_tag, MPI_Comm comm = world) {
  const device_bytes memory(message(number));
  MPI_Send(memory.data(), n, MPI_BYTE, 1, its_tag, comm);
}

// The bytes must arrive in an advertised buffer although the receiver calls no MPI function meanwhile. Rank 0 is the
// sender, because rank 0 makes all copies if both ranks use one device.
void arrives_by_itself() {
  const device_bytes in(bytes(count, 1));
  MPI_Request request = MPI_REQUEST_NULL;
  finish_work();
  if (rank == 1) request = receive(in.data(), tag);
  MPI_Barrier(world);
  if (rank == 0) send_from_device(1, tag);
  if (rank == 1) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    const auto has_arrived = [&] {
      const auto* const there =
          static_cast<const std::uint8_t*>(of_stand_in<stand_in::memory_function>("stand_in_memory")(in.address()));
      return std::ranges::equal(message(1), bytes(there, there + count));
    };
    while (!has_arrived() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    EXPECT(has_arrived());
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT(in.get() == message(1));
  }
  MPI_Barrier(world);
}

// The first message, from ordinary memory, must go to the first receive, although the sender could copy the second
// message, from device memory, to the advertised first receive.
void ordinary_memory_comes_first() {
  const device_bytes first(count);
  const device_bytes second(count);
  after_receives(
      [&](auto& requests) {
        requests = {receive(first.data(), tag), receive(second.data(), tag)};
      },
      [] {
        send_from_host(2, tag);
        send_from_device(3, tag);
      },
      [&] {
        EXPECT(first.get() == message(2));
        EXPECT(second.get() == message(3));
      });
}

void a_wildcard_comes_first() {
  const device_bytes first(count);
  const device_bytes second(count);
  after_receives(
      [&](auto& requests) {
        requests = {receive(first.data(), MPI_ANY_TAG), receive(second.data(), tag)};
      },
      [] {
        send_from_device(4, tag);
        send_from_device(5, tag);
      },
      [&] {
        EXPECT(first.get() == message(4));
        EXPECT(second.get() == message(5));
      });
}

void in_another_order() {
  const device_bytes memory[] = {device_bytes(count), device_bytes(count), device_bytes(count)};
  after_receives(
      [&](auto& requests) {
        for (int i = 0; i < 3; ++i) requests.push_back(receive(memory[i].data(), tag + i));
      },
      [] {
        for (const int i : {2, 0, 1}) send_from_device(6 + static_cast<unsigned>(i), tag + i);
      },
      [&] {
        for (unsigned i = 0; i < 3; ++i) EXPECT(memory[i].get() == message(6 + i));
      });
}

void of_two_communicators() {
  MPI_Comm comm;
  MPI_Comm_dup(world, &comm);
  meet(comm);
  const device_bytes first(count);
  const device_bytes second(count);
  after_receives(
      [&](auto& requests) {
        requests = {receive(first.data(), tag), receive(second.data(), tag, comm)};
      },
      [&] {
        send_from_device(10, tag, comm);
        send_from_device(11, tag);
      },
      [&] {
        EXPECT(first.get() == message(11));
        EXPECT(second.get() == message(10));
      });
  MPI_Comm_free(&comm);
}

// A receive that is cancelled, or whose buffer is too small, must not change its buffer. After a cancelled receive, the
// next receive must get the message.
void cancelled_and_too_short() {
  const device_bytes gone(bytes(count, 3));
  const device_bytes in(count);
  after_receives(
      [&](auto& requests) {
        MPI_Request request = receive(gone.data(), tag);
        MPI_Cancel(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        requests = {receive(in.data(), tag)};
      },
      [] { send_from_device(12, tag); },
      [&] {
        EXPECT(gone.get() == bytes(count, 3));
        EXPECT(in.get() == message(12));
      });
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank == 1) MPI_Irecv(gone.data(), n - 1, MPI_BYTE, 0, tag, world, &request);
  MPI_Barrier(world);
  if (rank == 0) send_from_device(13, tag);
  if (rank == 1) {
    int kind = MPI_SUCCESS;
    MPI_Error_class(MPI_Wait(&request, MPI_STATUS_IGNORE), &kind);
    EXPECT(kind == MPI_ERR_TRUNCATE);
    EXPECT(gone.get() == bytes(count, 3));
  }
  MPI_Barrier(world);
}

// Begins more receives than can be advertised at the same time. A message that is shorter than its buffer must not
// change the rest of the buffer.
void many() {
  constexpr std::size_t receives = 100;
  bytes expected(receives * count, 9);
  const device_bytes in(expected);
  const device_bytes out(message(14));
  after_receives(
      [&](auto& requests) {
        for (std::size_t i = 0; i < receives; ++i) requests.push_back(receive(in.data() + i * count, tag));
      },
      [&] {
        for (std::size_t i = 0; i < receives; ++i)
          MPI_Send(out.data() + i, n - static_cast<int>(i), MPI_BYTE, 1, tag, world);
      },
      [&] {
        const bytes sent = message(14);
        for (std::size_t i = 0; i < receives; ++i)
          std::copy(sent.begin() + static_cast<std::ptrdiff_t>(i), sent.end(),
                    expected.begin() + static_cast<std::ptrdiff_t>(i * count));
        EXPECT(in.get() == expected);
      });
}

// Receives and messages with two tags, from ordinary and device memory, in random order. Some receives begin before the
// messages are sent.
void at_random() {
  constexpr unsigned most = 12;
  struct step {
    int tag;
    bool host_sends, host_receives, waits, begins_early;
  };
  std::mt19937 numbers(seed_of(0, 77));
  bytes all = random_bytes(most * count, seed_of(0, 78));
  const device_bytes device_memory(all);
  bytes host_memory = all;
  for (unsigned round = 0; round < 30; ++round) {
    std::vector<step> steps(1 + numbers() % most);
    // Whether the next receive of each tag may begin before the messages are sent; receives of one tag must begin in
    // order.
    bool may_be_early[2] = {true, true};
    for (step& s : steps) {
      const unsigned kind = numbers() % 2;
      may_be_early[kind] = may_be_early[kind] && numbers() % 2 == 0;
      s = {tag + static_cast<int>(kind), numbers() % 4 == 0, numbers() % 4 == 0, numbers() % 3 != 0,
           may_be_early[kind]};
    }
    if (rank == 1) {
      device_memory.put(bytes(all.size(), 0));
      host_memory.assign(all.size(), 0);
    }
    finish_work();
    std::vector<MPI_Request> requests(steps.size(), MPI_REQUEST_NULL);
    const auto at = [&](std::size_t m, bool on_host) {
      return (on_host ? host_memory.data() : device_memory.data()) + m * count;
    };
    for (std::size_t m = 0; m < steps.size() && rank == 1; ++m)
      if (steps[m].begins_early) requests[m] = receive(at(m, steps[m].host_receives), steps[m].tag);
    MPI_Barrier(world);
    for (std::size_t m = 0; m < steps.size(); ++m) {
      const step& s = steps[m];
      if (rank == 0 && s.waits) MPI_Send(at(m, s.host_sends), n, MPI_BYTE, 1, s.tag, world);
      if (rank == 0 && !s.waits) MPI_Isend(at(m, s.host_sends), n, MPI_BYTE, 1, s.tag, world, &requests[m]);
      if (rank == 0 || s.begins_early) continue;
      if (s.waits) MPI_Recv(at(m, s.host_receives), n, MPI_BYTE, 0, s.tag, world, MPI_STATUS_IGNORE);
      if (!s.waits) requests[m] = receive(at(m, s.host_receives), s.tag);
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    if (rank == 0) continue;
    const bytes got = device_memory.get();
    for (std::size_t m = 0; m < steps.size(); ++m) {
      const bytes& where = steps[m].host_receives ? host_memory : got;
      const auto begin = static_cast<std::ptrdiff_t>(m * count);
      EXPECT(std::equal(where.begin() + begin, where.begin() + begin + n, all.begin() + begin));
    }
  }
}

// Both ranks send and receive at the same time, so both may claim wrong receives.
void both_at_random() {
  constexpr unsigned most = 12;
  std::mt19937 numbers(seed_of(0, 79));
  const bytes sent[] = {random_bytes(most * count, seed_of(0, 80)), random_bytes(most * count, seed_of(0, 81))};
  const device_bytes out(sent[rank]);
  bytes host_out = sent[rank];
  const device_bytes in(most * count);
  bytes host_in(most * count);
  struct step {
    int tag;
    bool host_sends, host_receives;
  };
  for (unsigned round = 0; round < 30; ++round) {
    std::vector<step> steps[2];  // indexed by the sender's rank
    for (auto& of_rank : steps) {
      of_rank.resize(1 + numbers() % most);
      for (step& s : of_rank) s = {tag + static_cast<int>(numbers() % 2), numbers() % 3 == 0, numbers() % 3 == 0};
    }
    in.put(bytes(most * count, 0));
    host_in.assign(most * count, 0);
    finish_work();
    std::vector<MPI_Request> requests;
    const auto& received = steps[other()];
    for (std::size_t m = 0; m < received.size(); ++m)
      MPI_Irecv((received[m].host_receives ? host_in.data() : in.data()) + m * count, n, MPI_BYTE, other(),
                received[m].tag, world, &requests.emplace_back());
    MPI_Barrier(world);
    for (std::size_t m = 0; m < steps[rank].size(); ++m)
      MPI_Isend((steps[rank][m].host_sends ? host_out.data() : out.data()) + m * count, n, MPI_BYTE, other(),
                steps[rank][m].tag, world, &requests.emplace_back());
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    const bytes got = in.get();
    for (std::size_t m = 0; m < received.size(); ++m) {
      const bytes& where = received[m].host_receives ? host_in : got;
      const auto begin = static_cast<std::ptrdiff_t>(m * count);
      EXPECT(std::equal(where.begin() + begin, where.begin() + begin + n, sent[other()].begin() + begin));
    }
  }
}

}  // namespace

void advertised_receives() {
  meet(world);
  if (direct()) arrives_by_itself();
  ordinary_memory_comes_first();
  meet(world, forgotten);
  a_wildcard_comes_first();
  meet(world, forgotten);
  in_another_order();
  of_two_communicators();
  cancelled_and_too_short();
  many();
  at_random();
  for (const int receiver : {0, 1}) {
    const device_bytes memory(count);
    if (rank != receiver) MPI_Send(memory.data(), n, MPI_BYTE, receiver, tag, world);
    if (rank == receiver) MPI_Recv(memory.data(), n, MPI_BYTE, other(), tag, world, MPI_STATUS_IGNORE);
  }
  both_at_random();
  meet(world, forgotten);
  if (direct()) arrives_by_itself();
}

}  // namespace adopted
