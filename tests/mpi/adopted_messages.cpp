// Messages between ranks from device memory of CUDA's own, as tests/mpi/adopted.cpp: that they are copied from device
// to device, that the program's own waits are respected, and what becomes of memory that is freed.
#include <cuda.h>
#include <dlfcn.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "tests/interpose/cuda/stand_in/stand_in.h"

namespace {

int wrong = 0;
int rank = 0;

void expect_at(bool right, const char* what, int line) {
  if (right) return;
  ++wrong;
  std::printf("wrong on rank %d, line %d: %s\n", rank, line, what);
}
#define EXPECT(condition) expect_at(condition, #condition, __LINE__)

using bytes = std::vector<std::uint8_t>;

template <class Function>
Function* of_stand_in(const char* name) {
  static const auto behind = reinterpret_cast<void* (*)(const char*)>(::dlsym(RTLD_DEFAULT, "hpe_cuda_driver_entry"));
  return reinterpret_cast<Function*>(behind(name));
}
unsigned calls_of(const char* entry) { return of_stand_in<stand_in::count_function>("stand_in_count")(entry); }

// The same on both ranks.
bytes random_bytes(std::size_t count, unsigned seed) {
  std::mt19937_64 numbers(seed);
  bytes result(count);
  for (auto& b : result) b = static_cast<std::uint8_t>(numbers());
  return result;
}
unsigned seed_of(int of_rank, std::size_t count) {
  static const unsigned first = [] {
    unsigned s = std::random_device{}();
    MPI_Bcast(&s, 1, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
    if (rank == 0) std::printf("seed %u\n", s);
    return s;
  }();
  return first + static_cast<unsigned>(count) * 2 + static_cast<unsigned>(of_rank);
}

class device_bytes {
 public:
  explicit device_bytes(std::size_t count) : count_(count) { EXPECT(cuMemAlloc(&address_, count + 1) == CUDA_SUCCESS); }
  explicit device_bytes(const bytes& content) : device_bytes(content.size()) { put(content); }
  ~device_bytes() { EXPECT(cuMemFree(address_) == CUDA_SUCCESS); }
  device_bytes(const device_bytes&) = delete;
  device_bytes& operator=(const device_bytes&) = delete;
  void put(const bytes& content) const {
    EXPECT(cuMemcpyHtoD(address_, content.data(), content.size()) == CUDA_SUCCESS);
  }
  [[nodiscard]] bytes get() const {
    bytes result(count_);
    EXPECT(cuMemcpyDtoH(result.data(), address_, count_) == CUDA_SUCCESS);
    return result;
  }
  [[nodiscard]] std::uint8_t* data() const { return reinterpret_cast<std::uint8_t*>(address_); }
  [[nodiscard]] CUdeviceptr address() const { return address_; }

 private:
  std::size_t count_;
  CUdeviceptr address_ = 0;
};

// Not with HPE_MPI_DIRECT=0: by way of the host.
bool direct() { return std::getenv("HPE_MPI_DIRECT") == nullptr; }

bool one_device() { return std::getenv("HPE_TEST_ONE_DEVICE") != nullptr; }
int device() { return one_device() ? 0 : rank; }

constexpr int tag = 5;
const MPI_Comm world = MPI_COMM_WORLD;
int other() { return 1 - rank; }

void both_directions(std::size_t count) {
  const bytes mine = random_bytes(count, seed_of(rank, count));
  const bytes theirs = random_bytes(count, seed_of(other(), count));
  const device_bytes out(mine);
  const device_bytes in(random_bytes(count, 3));
  const int n = static_cast<int>(count);
  MPI_Request requests[2];
  MPI_Status status;
  MPI_Irecv(in.data(), n, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, world, &requests[0]);
  MPI_Isend(out.data(), n, MPI_BYTE, other(), tag, world, &requests[1]);
  MPI_Wait(&requests[0], &status);
  MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  int got = 0;
  MPI_Get_count(&status, MPI_BYTE, &got);
  EXPECT(got == n && status.MPI_SOURCE == other() && status.MPI_TAG == tag);
  EXPECT(in.get() == theirs);
  EXPECT(out.get() == mine);

  // With ordinary memory on one side, and to oneself.
  bytes host(count, 7);
  MPI_Sendrecv(out.data(), n, MPI_BYTE, other(), tag, host.data(), n, MPI_BYTE, other(), tag, world, &status);
  EXPECT(host == theirs);
  host = mine;
  in.put(bytes(count, 9));
  MPI_Sendrecv(host.data(), n, MPI_BYTE, other(), tag, in.data(), n, MPI_BYTE, other(), tag, world, &status);
  EXPECT(in.get() == theirs);
  MPI_Sendrecv(out.data(), n, MPI_BYTE, rank, tag, in.data(), n, MPI_BYTE, rank, tag, world, &status);
  EXPECT(in.get() == mine);

  // Persistent, twice with other data.
  MPI_Send_init(out.data(), n, MPI_BYTE, other(), tag, world, &requests[0]);
  MPI_Recv_init(in.data(), n, MPI_BYTE, other(), tag, world, &requests[1]);
  for (unsigned round = 1; round < 3; ++round) {
    out.put(random_bytes(count, seed_of(rank, count) + round * 100));
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    EXPECT(in.get() == random_bytes(count, seed_of(other(), count) + round * 100));
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

void probes(std::size_t count) {
  const bytes theirs = random_bytes(count, seed_of(0, count));
  const int n = static_cast<int>(count);
  if (rank == 0) {
    const device_bytes out(theirs);
    MPI_Send(out.data(), n, MPI_BYTE, 1, tag, world);
    MPI_Send(out.data(), n, MPI_BYTE, 1, tag, world);
    return;
  }
  const device_bytes in(count);
  MPI_Status status;
  int got = 0;
  MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, world, &status);
  MPI_Get_count(&status, MPI_BYTE, &got);
  EXPECT(got == n);
  MPI_Recv(in.data(), n, MPI_BYTE, 0, tag, world, MPI_STATUS_IGNORE);
  EXPECT(in.get() == theirs);
  MPI_Message message;
  MPI_Mprobe(0, tag, world, &message, &status);
  in.put(bytes(count, 1));
  MPI_Mrecv(in.data(), n, MPI_BYTE, &message, MPI_STATUS_IGNORE);
  EXPECT(in.get() == theirs);
}

// A receive that is too short: an error, the memory as it was, and the sender goes on.
void truncation(std::size_t count) {
  const int n = static_cast<int>(count);
  if (rank == 0) {
    const device_bytes out(random_bytes(count, 1));
    MPI_Send(out.data(), n, MPI_BYTE, 1, tag, world);
    return;
  }
  const bytes before = random_bytes(count, 2);
  const device_bytes in(before);
  const int result = MPI_Recv(in.data(), n - 1, MPI_BYTE, 0, tag, world, MPI_STATUS_IGNORE);
  int kind = MPI_SUCCESS;
  MPI_Error_class(result, &kind);
  EXPECT(kind == MPI_ERR_TRUNCATE);
  EXPECT(in.get() == before);
}

// What MPI would send at once does not wait for the receiver, and may be changed then.
void sent_before_it_is_received() {
  for (const std::size_t count : {std::size_t{8}, std::size_t{4000}}) {
    const int n = static_cast<int>(count);
    const device_bytes out(random_bytes(count, seed_of(rank, count)));
    const device_bytes in(bytes(count, 0));
    MPI_Send(out.data(), n, MPI_BYTE, other(), tag, world);
    MPI_Barrier(world);
    out.put(bytes(count, 0xee));
    MPI_Recv(in.data(), n, MPI_BYTE, other(), tag, world, MPI_STATUS_IGNORE);
    EXPECT(in.get() == random_bytes(count, seed_of(other(), count)));
  }
}

// But a synchronous send ends after its receive has begun: what the receiver has sent before that is there.
void synchronous() {
  const device_bytes memory(random_bytes(8, seed_of(0, 8)));
  int token = 0;
  if (rank == 0) {
    int there = 0;
    MPI_Ssend(memory.data(), 8, MPI_BYTE, 1, tag, world);
    // Open MPI looks at what has come after it has answered.
    for (int i = 0; i < 100 && there == 0; ++i) MPI_Iprobe(1, tag + 1, world, &there, MPI_STATUS_IGNORE);
    EXPECT(there != 0);
    MPI_Recv(&token, 1, MPI_INT, 1, tag + 1, world, MPI_STATUS_IGNORE);
  } else {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    MPI_Send(&token, 1, MPI_INT, 0, tag + 1, world);
    MPI_Recv(memory.data(), 8, MPI_BYTE, 0, tag, world, MPI_STATUS_IGNORE);
  }
}

// The other rank has the old memory mapped.
void freed_and_allocated_again() {
  constexpr std::size_t count = std::size_t{6} << 20;
  CUdeviceptr address = 0;
  const device_bytes in(count);
  bool same = false;
  for (unsigned round = 0; round < 4; ++round) {
    const bytes mine = random_bytes(count, seed_of(rank, count) + 10 * round);
    const device_bytes out(mine);
    same = same || out.address() == address;
    address = out.address();
    MPI_Sendrecv(out.data(), count, MPI_BYTE, other(), tag, in.data(), count, MPI_BYTE, other(), tag, world,
                 MPI_STATUS_IGNORE);
    EXPECT(in.get() == random_bytes(count, seed_of(other(), count) + 10 * round));
  }
  EXPECT(same);
}

// Columns of a matrix, planes of a box, and one of them from or to bytes in a row.
void rows() {
  constexpr int n = 60;
  constexpr std::size_t count = std::size_t{n} * n * n;
  MPI_Datatype types[4];
  const int all[3] = {n, n, n};
  const int part[3] = {20, 30, 10};
  const int at[3] = {5, 7, 11};
  MPI_Type_vector(100, 3, 40, MPI_BYTE, &types[0]);
  MPI_Type_create_subarray(3, all, part, at, MPI_ORDER_C, MPI_BYTE, &types[1]);
  MPI_Datatype column;
  MPI_Type_vector(7, 1, 3, MPI_BYTE, &column);  // whose end is no multiple of its rows
  MPI_Type_contiguous(50, column, &types[2]);
  MPI_Type_free(&column);
  MPI_Type_dup(MPI_BYTE, &types[3]);
  const bytes mine = random_bytes(count, seed_of(rank, 1));
  const bytes theirs = random_bytes(count, seed_of(other(), 1));
  const device_bytes out(mine);
  const device_bytes in(count);
  for (int t = 0; t < 4; ++t) {
    int size = 0;
    MPI_Type_commit(&types[t]);
    MPI_Type_size(types[t], &size);
    for (const bool flat_out : {false, true})
      for (const bool flat_in : {false, true}) {
        if (t == 3) size = 1000;
        const int n_out = flat_out || t == 3 ? size : 1;
        const int n_in = flat_in || t == 3 ? size : 1;
        const MPI_Datatype type_out = flat_out ? MPI_BYTE : types[t];
        const MPI_Datatype type_in = flat_in ? MPI_BYTE : types[t];
        bytes expected(count, 0x55);
        bytes packed(static_cast<std::size_t>(size));
        in.put(expected);
        int position = 0;
        MPI_Pack(theirs.data(), n_out, type_out, packed.data(), size, &position, world);
        position = 0;
        MPI_Unpack(packed.data(), size, &position, expected.data(), n_in, type_in, world);
        MPI_Sendrecv(out.data(), n_out, type_out, other(), tag, in.data(), n_in, type_in, other(), tag, world,
                     MPI_STATUS_IGNORE);
        EXPECT(in.get() == expected);
      }
    MPI_Type_free(&types[t]);
  }
}

// Columns and boxes of any width, at any alignment.
void any_rows() {
  constexpr std::size_t count = 30000;
  std::mt19937_64 numbers(seed_of(0, 2));
  const auto below = [&](unsigned n) { return static_cast<int>(numbers() % n); };
  for (unsigned round = 0; round < 60; ++round) {
    const int widths[] = {1, 2, 3, 4, 8, 16, 48, 64};
    const int width = widths[below(8)];
    const int pitches[2] = {width + below(3) * width + below(5), width + below(3) * width + below(2) * 16};
    const int rows = 1 + below(40);
    const int planes = 1 + below(4);
    MPI_Datatype types[2];
    MPI_Datatype plane;
    for (int t = 0; t < 2; ++t) {
      MPI_Type_vector(rows, width, pitches[t], MPI_BYTE, &plane);
      MPI_Type_create_resized(plane, 0, static_cast<MPI_Aint>(pitches[t]) * rows + below(3) * 8, &types[t]);
      MPI_Type_commit(&types[t]);
      MPI_Type_free(&plane);
    }
    const int at[2] = {below(20), below(20)};
    const bytes mine = random_bytes(count, seed_of(rank, 3) + round * 4);
    const bytes theirs = random_bytes(count, seed_of(other(), 3) + round * 4);
    bytes expected = random_bytes(count, round);
    const device_bytes out(mine);
    const device_bytes in(expected);
    bytes packed(static_cast<std::size_t>(width) * rows * planes);
    const int size = static_cast<int>(packed.size());
    int position = 0;
    MPI_Pack(theirs.data() + at[0], planes, types[0], packed.data(), size, &position, world);
    position = 0;
    MPI_Unpack(packed.data(), size, &position, expected.data() + at[1], planes, types[1], world);
    MPI_Sendrecv(out.data() + at[0], planes, types[0], other(), tag, in.data() + at[1], planes, types[1], other(), tag,
                 world, MPI_STATUS_IGNORE);
    EXPECT(in.get() == expected);
    MPI_Type_free(&types[0]);
    MPI_Type_free(&types[1]);
  }
}

// Stretches of any length in any order, of elements of some size, several elements, as many bytes as told.
MPI_Datatype scattered_type(std::mt19937_64& numbers, int units, MPI_Datatype unit, int& room) {
  std::vector<int> lengths;
  std::vector<int> places;
  int at = 0;
  for (int left = units; left > 0; left -= lengths.back()) {
    lengths.push_back(std::min(left, 1 + static_cast<int>(numbers() % 5)));
    places.push_back(at += static_cast<int>(numbers() % 3));
    at += lengths.back();
  }
  for (std::size_t i = lengths.size() - 1; i > 0; --i) {
    const std::size_t other = numbers() % (i + 1);
    std::swap(lengths[i], lengths[other]);
    std::swap(places[i], places[other]);
  }
  MPI_Datatype indexed;
  MPI_Datatype result;
  MPI_Type_indexed(static_cast<int>(lengths.size()), lengths.data(), places.data(), unit, &indexed);
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  MPI_Type_get_extent(unit, &lower, &extent);
  room = at + static_cast<int>(numbers() % 4);
  MPI_Type_create_resized(indexed, 0, room * extent, &result);
  MPI_Type_commit(&result);
  MPI_Type_free(&indexed);
  room *= static_cast<int>(extent);
  return result;
}

void any_types() {
  const MPI_Datatype units[] = {MPI_BYTE, MPI_SHORT, MPI_FLOAT, MPI_DOUBLE};
  std::mt19937_64 numbers(seed_of(0, 4));
  for (unsigned round = 0; round < 60; ++round) {
    const MPI_Datatype unit = units[numbers() % 4];
    const int elements = 1 + static_cast<int>(numbers() % 5);
    int size = 0;
    int room[2] = {};
    const int in_each = 1 + static_cast<int>(numbers() % 300);
    MPI_Type_size(unit, &size);
    size *= in_each;
    const MPI_Datatype types[] = {scattered_type(numbers, in_each, unit, room[0]),
                                  scattered_type(numbers, in_each, unit, room[1])};
    const int rows[] = {static_cast<int>(numbers() % 4), static_cast<int>(numbers() % 4)};  // 0: bytes in a row
    const int counts[] = {rows[0] == 0 ? size * elements : elements, rows[1] == 0 ? size * elements : elements};
    const MPI_Datatype used[] = {rows[0] == 0 ? MPI_BYTE : types[0], rows[1] == 0 ? MPI_BYTE : types[1]};
    const std::size_t bytes_out = static_cast<std::size_t>(std::max(room[0], size)) * elements;
    const std::size_t bytes_in = static_cast<std::size_t>(std::max(room[1], size)) * elements;
    const device_bytes out(random_bytes(bytes_out, seed_of(rank, 5) + round * 4));
    const bytes theirs = random_bytes(bytes_out, seed_of(other(), 5) + round * 4);
    bytes expected = random_bytes(bytes_in, round);
    const device_bytes in(expected);
    bytes packed(static_cast<std::size_t>(size) * elements);
    int position = 0;
    MPI_Pack(theirs.data(), counts[0], used[0], packed.data(), size * elements, &position, world);
    position = 0;
    MPI_Unpack(packed.data(), size * elements, &position, expected.data(), counts[1], used[1], world);
    MPI_Sendrecv(out.data(), counts[0], used[0], other(), tag, in.data(), counts[1], used[1], other(), tag, world,
                 MPI_STATUS_IGNORE);
    EXPECT(in.get() == expected);
    // A persistent one reads what is there at each start, and less may come than there is room for.
    MPI_Request send;
    MPI_Send_init(out.data(), counts[0], used[0], other(), tag, world, &send);
    for (unsigned start = 1; start < 3; ++start) {
      out.put(random_bytes(bytes_out, seed_of(rank, 5) + round * 4 + start));
      const bytes next = random_bytes(bytes_out, seed_of(other(), 5) + round * 4 + start);
      position = 0;
      MPI_Pack(next.data(), counts[0], used[0], packed.data(), size * elements, &position, world);
      bytes all(bytes_in * 2, static_cast<std::uint8_t>(start));
      const device_bytes twice(all);
      position = 0;
      MPI_Unpack(packed.data(), size * elements, &position, all.data(), counts[1], used[1], world);
      MPI_Start(&send);
      MPI_Recv(twice.data(), counts[1] * 2, used[1], other(), tag, world, MPI_STATUS_IGNORE);
      MPI_Wait(&send, MPI_STATUS_IGNORE);
      EXPECT(twice.get() == all);
    }
    MPI_Request_free(&send);
    for (MPI_Datatype type : types) MPI_Type_free(&type);
  }
}

unsigned copies() { return calls_of("cuMemcpyAsync"); }

// Of a sender that waits the sender copies; of any other, the receiver. On one device the first rank copies what comes
// from one that waits.
void sides() {
  constexpr std::size_t count = 10000;
  const device_bytes out(random_bytes(count, seed_of(rank, count)));
  const device_bytes in(count);
  const bytes theirs = random_bytes(count, seed_of(other(), count));
  for (int round = 0; round < 8; ++round) {
    const int sender = round / 4;
    const bool sends = rank == sender;
    if (!sends) in.put(bytes(count, 1));
    MPI_Barrier(world);
    const unsigned before = copies();
    MPI_Request request;
    int over = 0;
    if (!sends) {
      MPI_Recv(in.data(), count, MPI_BYTE, sender, tag, world, MPI_STATUS_IGNORE);
    } else if (round % 2 == 0) {
      MPI_Send(out.data(), count, MPI_BYTE, 1 - sender, tag, world);
    } else {
      MPI_Isend(out.data(), count, MPI_BYTE, 1 - sender, tag, world, &request);
      while (over == 0) MPI_Test(&request, &over, MPI_STATUS_IGNORE);
    }
    const bool copied = copies() != before;
    const bool by_sender = round % 2 == 0 && (!one_device() || sender == 0);
    if (direct()) EXPECT(copied == (sends == by_sender));
    if (!sends) EXPECT(in.get() == theirs);
  }
}

// A sender that cannot write the receiver's memory leaves the copy to it; a receiver that can do neither gets chunks.
void out_of_reach() {
  constexpr std::size_t count = 10000;
  const auto refuse = of_stand_in<stand_in::refuse_function>("stand_in_refuse_peers");
  for (int round = 0; round < 2; ++round) {
    const device_bytes out(random_bytes(count, seed_of(rank, count)));
    const device_bytes in(count);
    refuse(rank == 0 || round == 1 ? 1 : 0);
    if (rank == 0) MPI_Send(out.data(), count, MPI_BYTE, 1, tag, world);
    if (rank == 1) {
      MPI_Recv(in.data(), count, MPI_BYTE, 0, tag, world, MPI_STATUS_IGNORE);
      EXPECT(in.get() == random_bytes(count, seed_of(0, count)));
    }
    MPI_Barrier(world);
    refuse(0);
  }
}

const stand_in::kernel fill{[](const std::uint64_t* parameters) {
                              auto* const p = static_cast<std::uint8_t*>(
                                  of_stand_in<stand_in::memory_function>("stand_in_memory")(parameters[0]));
                              for (std::uint64_t i = 0; i < parameters[1]; ++i)
                                p[i] = static_cast<std::uint8_t>(parameters[2]);
                            },
                            3};

void launch(const device_bytes& where, std::uint64_t count, std::uint64_t value, CUstream stream) {
  CUdeviceptr address = where.address();
  void* parameters[] = {&address, &count, &value};
  auto* const function = reinterpret_cast<CUfunction>(const_cast<stand_in::kernel*>(&fill));
  EXPECT(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr) == CUDA_SUCCESS);
}

// Messages wait for what is queued, on whatever stream; and for nothing if the program has waited itself.
void waits() {
  constexpr std::size_t count = 100000;
  CUstream streams[2];
  for (CUstream& s : streams) EXPECT(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  const device_bytes out(count);
  const device_bytes in(count);
  const auto exchange = [&](std::uint8_t value) {
    MPI_Sendrecv(out.data(), count, MPI_BYTE, other(), tag, in.data(), count, MPI_BYTE, other(), tag, world,
                 MPI_STATUS_IGNORE);
    EXPECT(in.get() == bytes(count, value));
  };
  for (unsigned round = 0; round < 8; ++round) {
    for (unsigned i = 0; i < 10; ++i) launch(out, count, i, streams[round % 2]);
    launch(out, count, 50 + round, streams[round % 2]);
    exchange(static_cast<std::uint8_t>(50 + round));
  }
  for (unsigned round = 0; round < 4; ++round) {
    launch(out, count, 100 + round, streams[0]);
    EXPECT((round % 2 == 0 ? cuStreamSynchronize(streams[0]) : cuCtxSynchronize()) == CUDA_SUCCESS);
    const unsigned before = calls_of("cuCtxSynchronize");
    MPI_Sendrecv(out.data(), count, MPI_BYTE, other(), tag, in.data(), count, MPI_BYTE, other(), tag, world,
                 MPI_STATUS_IGNORE);
    EXPECT(calls_of("cuCtxSynchronize") == before);
    EXPECT(in.get() == bytes(count, static_cast<std::uint8_t>(100 + round)));
  }
  // A persistent send waits at each start.
  MPI_Request send;
  MPI_Send_init(out.data(), count, MPI_BYTE, other(), tag, world, &send);
  for (unsigned round = 0; round < 3; ++round) {
    for (unsigned i = 0; i < 10; ++i) launch(out, count, 150 + round, streams[0]);
    MPI_Start(&send);
    MPI_Recv(in.data(), count, MPI_BYTE, other(), tag, world, MPI_STATUS_IGNORE);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    EXPECT(in.get() == bytes(count, static_cast<std::uint8_t>(150 + round)));
  }
  MPI_Request_free(&send);
  // A wait for one stream says nothing of the other.
  launch(out, count, 1, streams[0]);
  for (unsigned i = 0; i < 10; ++i) launch(out, count, 200, streams[1]);
  EXPECT(cuStreamSynchronize(streams[0]) == CUDA_SUCCESS);
  exchange(200);
  for (const CUstream s : streams) EXPECT(cuStreamDestroy(s) == CUDA_SUCCESS);
}

// CPU code of this rank has the memory in its hands before and after.
void touched() {
  constexpr std::size_t count = std::size_t{3} << 20;
  bytes mine = random_bytes(count, seed_of(rank, 9));
  bytes theirs = random_bytes(count, seed_of(other(), 9));
  const device_bytes out(mine);
  const device_bytes in(count);
  for (unsigned round = 0; round < 3; ++round) {
    out.data()[round * 1000] = static_cast<std::uint8_t>(round);
    theirs[round * 1000] = static_cast<std::uint8_t>(round);
    in.data()[count - 1] = 77;
    MPI_Sendrecv(out.data(), count, MPI_BYTE, other(), tag, in.data(), count, MPI_BYTE, other(), tag, world,
                 MPI_STATUS_IGNORE);
    EXPECT(in.data()[round * 1000] == round && in.data()[count - 1] == theirs[count - 1]);
    EXPECT(in.get() == theirs);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(world, &rank);
  MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  CUcontext context = nullptr;
  EXPECT(cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&context, device()) == CUDA_SUCCESS);
  cuCtxSetCurrent(context);
  freed_and_allocated_again();
  for (const std::size_t count : {0, 1, 8, 2031, 2032, 64 << 10, 1 << 20}) both_directions(count);
  both_directions(std::size_t{70} << 20);
  for (const std::size_t count : {8, 2032, 100000}) probes(count);
  for (const std::size_t count : {8, 2032, 2100, 100000}) truncation(count);
  sent_before_it_is_received();
  synchronous();
  rows();
  any_rows();
  any_types();
  EXPECT(calls_of("cuModuleLoadData") == (direct() ? 1U : 0U));
  waits();
  touched();
  sides();
  EXPECT((calls_of("cuIpcOpenMemHandle_v2") != 0) == direct());
  out_of_reach();
  int all = 0;
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, world);
  if (rank == 0 && all == 0) std::printf("adopted messages: all right\n");
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
