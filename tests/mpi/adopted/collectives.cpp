// Tests collective calls on device memory that CUDA allocated.
#include <algorithm>
#include <functional>

#include "tests/mpi/adopted/adopted.h"

namespace adopted {

namespace {

// Calls call(). Returns how many allocations of the other rank both ranks together have mapped during the call.
template <class Call>
int mapped_by(Call&& call) {
  const unsigned before = calls_of("cuIpcOpenMemHandle_v2");
  call();
  int mapped = static_cast<int>(calls_of("cuIpcOpenMemHandle_v2") - before);
  MPI_Allreduce(MPI_IN_PLACE, &mapped, 1, MPI_INT, MPI_SUM, world);
  return mapped;
}

// Exchanges must copy from device to device, even if only one rank uses device memory. The ranks then map new memory of
// the other rank.
void exchanges() {
  constexpr int count = 100000;
  MPI_Comm comm;
  MPI_Comm_dup(world, &comm);
  const std::vector<int> counts{count, count};
  const std::vector<int> places{0, count};
  const auto wait = [](auto&& begin) {
    MPI_Request request;
    begin(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  };
  using buffer = std::uint8_t*;
  const std::function<void(buffer, buffer)> calls[] = {
      [&](buffer out, buffer in) { MPI_Alltoall(out, count, MPI_BYTE, in, count, MPI_BYTE, comm); },
      [&](buffer out, buffer in) {
        wait([&](MPI_Request* r) { MPI_Ialltoall(out, count, MPI_BYTE, in, count, MPI_BYTE, comm, r); });
      },
      [&](buffer out, buffer in) {
        for (int root = 0; root < 2; ++root)
          MPI_Scatterv(out, counts.data(), places.data(), MPI_BYTE, in + root * count, count, MPI_BYTE, root, comm);
      },
      [&](buffer out, buffer in) {
        for (int root = 0; root < 2; ++root)
          wait([&](MPI_Request* r) {
            MPI_Igatherv(out + root * count, count, MPI_BYTE, in, counts.data(), places.data(), MPI_BYTE, root, comm,
                         r);
          });
      }};
  for (const auto& call : calls) {
    const device_bytes out(random_bytes(2 * count, seed_of(rank, 20)));
    const device_bytes in(2 * count);
    const int mapped = mapped_by([&] { call(out.data(), in.data()); });
    EXPECT((mapped > 0) == direct() || one_device());
    const bytes got = in.get();
    for (int r = 0; r < 2; ++r) {
      const bytes sent = random_bytes(2 * count, seed_of(r, 20));
      EXPECT(std::equal(got.begin() + r * count, got.begin() + (r + 1) * count, sent.begin() + rank * count));
    }
  }
  for (const bool host : {false, true}) {
    const device_bytes out(random_bytes(2 * count, seed_of(rank, 20)));
    const device_bytes in(2 * count);
    bytes in_host(2 * count);
    const bool here = host && rank == 0;
    std::uint8_t* const to = here ? in_host.data() : in.data();
    const int mapped = mapped_by([&] { calls[0](out.data(), to); });
    EXPECT((mapped > 0) == direct() || one_device());
    const bytes got = here ? in_host : in.get();
    for (int r = 0; r < 2; ++r) {
      const bytes sent = random_bytes(2 * count, seed_of(r, 20));
      EXPECT(std::equal(got.begin() + r * count, got.begin() + (r + 1) * count, sent.begin() + rank * count));
    }
  }
  MPI_Comm_free(&comm);
}

// If all blocks are small, the ranks leave MPI_Allgatherv to MPI, and do not map memory of the other rank.
void small_blocks() {
  constexpr int count = 1000;
  const std::vector<int> counts{count, count};
  const std::vector<int> places{0, count};
  const device_bytes out(random_bytes(count, seed_of(rank, 20)));
  const device_bytes in(2 * count);
  const int mapped = mapped_by([&] {
    for (int n = 0; n < 4; ++n)
      MPI_Allgatherv(out.data(), count, MPI_BYTE, in.data(), counts.data(), places.data(), MPI_BYTE, world);
  });
  EXPECT(mapped == 0);
  const bytes got = in.get();
  for (int r = 0; r < 2; ++r) {
    const bytes sent = random_bytes(count, seed_of(r, 20));
    EXPECT(std::equal(sent.begin(), sent.end(), got.begin() + r * count));
  }
}

// A rank sends more bytes than the root's buffer has. The root's call must return an error, the other rank's call must
// not. Open MPI's own functions may not return in this case, so this test runs only if hpe copies from device to
// device.
void too_much() {
  if (!direct()) return;
  constexpr int count = 100000;
  MPI_Comm comm;
  MPI_Comm_dup(world, &comm);
  const std::vector<int> counts{count, count - 1};
  const std::vector<int> places{0, count};
  const device_bytes out(random_bytes(count, seed_of(rank, 20)));
  const device_bytes in(2 * count);
  MPI_Request request;
  MPI_Igatherv(out.data(), count, MPI_BYTE, in.data(), counts.data(), places.data(), MPI_BYTE, 0, comm, &request);
  int kind = MPI_SUCCESS;
  MPI_Error_class(MPI_Wait(&request, MPI_STATUS_IGNORE), &kind);
  EXPECT(kind == (rank == 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
  MPI_Comm_free(&comm);
}

template <class Number>
void reductions(MPI_Datatype type) {
  constexpr int count = 30000;
  const auto number = [](int of_rank, int i) { return static_cast<Number>((i * 7 + of_rank * 5) % 100 - 50); };
  bytes content(count * sizeof(Number));
  auto* const numbers = reinterpret_cast<Number*>(content.data());
  for (int i = 0; i < count; ++i) numbers[i] = number(rank, i);
  const device_bytes out(content);
  const device_bytes in(content.size());
  for (const MPI_Op op : {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX}) {
    MPI_Allreduce(out.data(), in.data(), count, type, op, world);
    const bytes got = in.get();
    int bad = 0;
    for (int i = 0; i < count; ++i) {
      const Number a = number(0, i);
      const Number b = number(1, i);
      const Number expected = op == MPI_SUM    ? a + b
                              : op == MPI_PROD ? a * b
                              : op == MPI_MIN  ? std::min(a, b)
                                               : std::max(a, b);
      bad += reinterpret_cast<const Number*>(got.data())[i] != expected ? 1 : 0;
    }
    EXPECT(bad == 0);
  }
}

}  // namespace

void collective_calls() {
  exchanges();
  small_blocks();
  too_much();
  reductions<float>(MPI_FLOAT);
  reductions<double>(MPI_DOUBLE);
  reductions<std::int64_t>(MPI_INT64_T);
}

}  // namespace adopted
