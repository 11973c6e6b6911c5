// Tests messages with derived datatypes between ranks, from device memory that CUDA allocated.
#include <algorithm>

#include "tests/mpi/adopted/adopted.h"

namespace adopted {

namespace {

// CPU code accesses every page of the memory, as in a program with other data in the same pages.
void touch(const device_bytes& memory, std::size_t count) {
  volatile std::uint8_t* const p = memory.data();
  for (std::size_t i = 0; i < count; i += 512) p[i] = p[i];
}

// Messages with columns of a matrix and planes of a box, to receives with the same datatype, and to and from contiguous
// bytes.
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
  MPI_Type_vector(7, 1, 3, MPI_BYTE, &column);  // the type's extent is not a multiple of its stride
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

// Messages with columns and boxes of random widths and alignments.
void any_rows() {
  constexpr std::size_t count = 60000;
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

// Returns a datatype of `units` elements of the type `unit`, in stretches with random lengths, gaps and order. Sets
// `room` to the datatype's extent in bytes.
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
    const int rows[] = {static_cast<int>(numbers() % 4), static_cast<int>(numbers() % 4)};  // 0: contiguous bytes
    const int counts[] = {rows[0] == 0 ? size * elements : elements, rows[1] == 0 ? size * elements : elements};
    const MPI_Datatype used[] = {rows[0] == 0 ? MPI_BYTE : types[0], rows[1] == 0 ? MPI_BYTE : types[1]};
    const std::size_t bytes_out = static_cast<std::size_t>(std::max(room[0], size)) * elements;
    const std::size_t bytes_in = static_cast<std::size_t>(std::max(room[1], size)) * elements;
    const device_bytes out(random_bytes(bytes_out, seed_of(rank, 5) + round * 4));
    if (round % 3 == 1) touch(out, bytes_out);
    const bytes theirs = random_bytes(bytes_out, seed_of(other(), 5) + round * 4);
    bytes expected = random_bytes(bytes_in, round);
    const device_bytes in(expected);
    if (round % 3 != 0) touch(in, bytes_in);
    bytes packed(static_cast<std::size_t>(size) * elements);
    int position = 0;
    MPI_Pack(theirs.data(), counts[0], used[0], packed.data(), size * elements, &position, world);
    position = 0;
    MPI_Unpack(packed.data(), size * elements, &position, expected.data(), counts[1], used[1], world);
    MPI_Sendrecv(out.data(), counts[0], used[0], other(), tag, in.data(), counts[1], used[1], other(), tag, world,
                 MPI_STATUS_IGNORE);
    EXPECT(in.get() == expected);
    // A persistent send must read the buffer again at each start. The message may be shorter than its receive.
    MPI_Request send;
    MPI_Send_init(out.data(), counts[0], used[0], other(), tag, world, &send);
    for (unsigned start = 1; start < 3; ++start) {
      out.put(random_bytes(bytes_out, seed_of(rank, 5) + round * 4 + start));
      const bytes next = random_bytes(bytes_out, seed_of(other(), 5) + round * 4 + start);
      position = 0;
      MPI_Pack(next.data(), counts[0], used[0], packed.data(), size * elements, &position, world);
      bytes all(bytes_in * 2, static_cast<std::uint8_t>(start));
      const device_bytes twice(all);
      if (round % 3 != 0) touch(twice, all.size());
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

// Twelve kinds of datatypes; each of them has bytes that are not contiguous.
std::vector<MPI_Datatype> twelve_types() {
  std::vector<MPI_Datatype> all(12);
  MPI_Datatype inner;
  const int lengths[] = {3, 1, 4, 2};
  const int places[] = {20, 2, 9, 30};
  const MPI_Aint bytes_apart[] = {160, 8, 64, 320};
  const int sizes[] = {12, 10, 8};
  const int parts[] = {5, 4, 3};
  const int starts[] = {2, 3, 1};
  const int kinds[] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK};
  const int defaults[] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
  const int grid[] = {2, 2};
  MPI_Type_vector(20, 3, 7, MPI_DOUBLE, &all[0]);
  MPI_Type_create_hvector(20, 3, 58, MPI_SHORT, &all[1]);
  MPI_Type_vector(5, 2, 4, MPI_FLOAT, &inner);
  MPI_Type_create_hvector(6, 1, 200, inner, &all[2]);  // vectors of vectors
  MPI_Type_free(&inner);
  MPI_Type_vector(4, 1, 3, MPI_DOUBLE, &inner);
  MPI_Type_vector(3, 2, 5, inner, &all[3]);
  MPI_Type_free(&inner);
  MPI_Type_indexed(4, lengths, places, MPI_INT, &all[4]);
  MPI_Type_create_hindexed(4, lengths, bytes_apart, MPI_FLOAT, &all[5]);
  MPI_Type_create_indexed_block(4, 2, places, MPI_DOUBLE, &all[6]);
  MPI_Type_create_hindexed_block(4, 2, bytes_apart, MPI_INT, &all[7]);
  const MPI_Datatype members[] = {MPI_DOUBLE, MPI_CHAR, MPI_INT, MPI_SHORT};
  MPI_Type_create_struct(4, lengths, bytes_apart, members, &all[8]);
  MPI_Type_vector(6, 1, 2, MPI_INT, &inner);
  MPI_Type_create_resized(inner, -4, 100, &all[9]);
  MPI_Type_free(&inner);
  MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, MPI_FLOAT, &all[10]);
  MPI_Type_create_darray(4, 3, 2, sizes, kinds, defaults, grid, MPI_ORDER_FORTRAN, MPI_DOUBLE, &all[11]);
  for (MPI_Datatype& each : all) MPI_Type_commit(&each);
  return all;
}

// MPI_Pack and MPI_Unpack from device memory to device memory: one kernel for each call, and no copy to host memory.
void packing() {
  constexpr std::size_t room = 12000;
  constexpr std::size_t at = 64;  // the resized type begins before its address
  constexpr int start = 5;        // the position in the packed data
  for (MPI_Datatype type : twelve_types()) {
    const bytes source = random_bytes(room, seed_of(rank, 6));
    const device_bytes from(source);
    int size = 0;
    MPI_Type_size(type, &size);
    const int all = start + 3 * size;
    bytes packed(static_cast<std::size_t>(all), 1);
    const device_bytes packed_on_device(packed);
    bytes result(room, 2);
    const device_bytes to(result);
    int position = start;
    MPI_Pack(source.data() + at, 3, type, packed.data(), all, &position, world);
    int position_back = start;
    MPI_Unpack(packed.data(), all, &position_back, result.data() + at, 3, type, world);
    int on_device = start;
    int back = start;
    const auto copies = [] { return calls_of("cuMemcpyDtoHAsync_v2") + calls_of("cuMemcpyDtoH_v2"); };
    const unsigned launches = calls_of("cuLaunchKernel");
    const unsigned before = copies();
    MPI_Pack(from.data() + at, 3, type, packed_on_device.data(), all, &on_device, world);
    MPI_Unpack(packed_on_device.data(), all, &back, to.data() + at, 3, type, world);
    if (direct()) EXPECT(copies() == before);
    EXPECT(on_device == position && back == position_back);
    EXPECT(packed_on_device.get() == packed);
    EXPECT(to.get() == result);
    if (direct()) EXPECT(calls_of("cuLaunchKernel") == launches + 2);
    // CPU code has touched both buffers, and the last call must not write behind the end of the packed data.
    touch(packed_on_device, packed.size());
    touch(from, room);
    on_device = 0;
    MPI_Pack(from.data() + at, 3, type, packed_on_device.data(), all, &on_device, world);
    position = 0;
    MPI_Pack(source.data() + at, 3, type, packed.data(), all, &position, world);
    EXPECT(std::equal(packed.begin(), packed.end(), packed_on_device.data()));
    MPI_Type_free(&type);
  }
}

}  // namespace

void messages_of_all_types() {
  packing();
  rows();
  any_rows();
  any_types();
}

}  // namespace adopted
