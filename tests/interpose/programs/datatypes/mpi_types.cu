// Compares messages with twelve datatypes, and MPI_Pack and MPI_Unpack, with a kernel of the program that packs the same
// words, and a message of the packed words. Two ranks, under hpe:
//
//   mpirun -n 2 hpe run -- mpi_types-static [n]
//
// n: the datatypes select about n * n words of an array of n * n * 8 words. Rank 0 prints medians in microseconds: of
// half a round trip with the datatype, of half a round trip packed by hand, and of packing (MPI_Pack, by hand) with a
// copy of the first packed word to the host, because MPI_Pack returns before hpe has packed. Also prints if a message
// differs.
#include "tests/interpose/programs/mpi_bench.h"

namespace {

__global__ void pack(unsigned* to, const unsigned* from, const unsigned* places, unsigned count) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    to[i] = from[places[i]];
}
__global__ void unpack(unsigned* to, const unsigned* from, const unsigned* places, unsigned count) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    to[places[i]] = from[i];
}
__global__ void number(unsigned* p, unsigned count, unsigned first) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) p[i] = first + i;
}

struct named_type {
  const char* name;
  MPI_Datatype type;
};

std::vector<named_type> twelve_types(int n) {
  std::vector<named_type> all;
  MPI_Datatype type;
  MPI_Datatype inner;
  const auto add = [&](const char* name) {
    MPI_Type_commit(&type);
    all.push_back({name, type});
  };
  std::vector<int> lengths(n, n / 2 > 0 ? n / 2 : 1);
  std::vector<int> places(n);
  std::vector<MPI_Aint> apart(n);
  for (int i = 0; i < n; ++i) {
    lengths[i] -= i % 5 < n / 4 ? i % 5 : 0;
    places[i] = i * n * 4 + i % 7;
    apart[i] = MPI_Aint{4} * places[i];
  }
  MPI_Type_contiguous(n * n, MPI_INT, &type);
  add("contiguous");
  MPI_Type_vector(n * n, 1, 8, MPI_INT, &type);
  add("vector of words");
  MPI_Type_vector(n, n, 8 * n, MPI_INT, &type);
  add("vector of rows");
  MPI_Type_vector(n, 1, 4, MPI_INT, &inner);
  MPI_Type_create_hvector(n, 1, MPI_Aint{16} * n + 64, inner, &type);
  MPI_Type_free(&inner);
  add("vector of vectors");
  MPI_Type_indexed(n, lengths.data(), places.data(), MPI_INT, &type);
  add("indexed");
  MPI_Type_create_hindexed(n, lengths.data(), apart.data(), MPI_INT, &type);
  add("hindexed");
  MPI_Type_create_indexed_block(n, n / 2, places.data(), MPI_INT, &type);
  add("indexed block");
  MPI_Type_vector(n, 1, 3, MPI_INT, &inner);
  std::vector<int> few(n);
  for (int i = 0; i < n; ++i) few[i] = i;
  MPI_Type_create_indexed_block(n, 1, few.data(), inner, &type);
  MPI_Type_free(&inner);
  add("indexed vectors");
  std::vector<MPI_Datatype> members(n, MPI_INT);
  for (int i = 1; i < n; i += 2) members[i] = MPI_FLOAT;
  MPI_Type_create_struct(n, lengths.data(), apart.data(), members.data(), &type);
  add("struct");
  MPI_Type_vector(n, 1, 2, MPI_INT, &inner);
  MPI_Type_create_resized(inner, 0, MPI_Aint{12} * n, &type);
  MPI_Type_free(&inner);
  inner = type;
  MPI_Type_contiguous(n, inner, &type);
  MPI_Type_free(&inner);
  add("resized");
  const int sizes[] = {n, 2 * n, 4};
  const int parts[] = {n / 2, n, 2};
  const int starts[] = {n / 4, n / 2, 1};
  MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type);
  add("subarray");
  const int kinds[] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK};
  const int defaults[] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
  const int plane[] = {2 * n, 2 * n};
  const int grid[] = {2, 2};
  MPI_Type_create_darray(4, 3, 2, plane, kinds, defaults, grid, MPI_ORDER_C, MPI_INT, &type);
  add("darray");
  return all;
}

// The median time of `half_trip` in microseconds. half_trip(send) sends or receives one message.
template <class HalfTrip>
double round_trips(int rounds, HalfTrip half_trip) {
  std::vector<double> times;
  for (int i = 0; i < rounds + 3; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = now();
    half_trip(rank() == 0);
    half_trip(rank() != 0);
    if (i >= 3) times.push_back((now() - begin) * 5e5);
  }
  return median(times);
}

template <class Work>
double alone(int rounds, Work work) {
  std::vector<double> times;
  for (int i = 0; i < rounds + 3; ++i) {
    const double begin = now();
    work();
    if (i >= 3) times.push_back((now() - begin) * 1e6);
  }
  return median(times);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  CHECK(cudaSetDevice(rank() % devices));
  const int n = argc > 1 ? std::atoi(argv[1]) : 256;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 30;
  const unsigned words = static_cast<unsigned>(n) * n * 8 + 64 * n;
  unsigned *array, *packed, *places;
  CHECK(cudaMalloc(&array, words * sizeof(unsigned)));
  CHECK(cudaMalloc(&packed, words * sizeof(unsigned)));
  CHECK(cudaMalloc(&places, words * sizeof(unsigned)));
  std::vector<unsigned> numbers(words);
  for (unsigned i = 0; i < words; ++i) numbers[i] = i;
  const int other = 1 - rank();
  if (rank() == 0)
    std::printf("%-18s %10s %10s %10s %7s %10s %10s\n", "datatype", "bytes", "datatype", "by hand", "ratio", "MPI_Pack",
                "by hand");
  for (const auto& [name, type] : twelve_types(n)) {
    int size = 0;
    int position = 0;
    MPI_Type_size(type, &size);
    const unsigned count = static_cast<unsigned>(size) / 4;
    std::vector<unsigned> its(count);
    MPI_Pack(numbers.data(), 1, type, its.data(), size, &position, MPI_COMM_WORLD);
    CHECK(cudaMemcpy(places, its.data(), count * sizeof(unsigned), cudaMemcpyHostToDevice));
    const auto reset = [&](unsigned first) {
      number<<<256, 256>>>(array, words, first);
      CHECK(cudaDeviceSynchronize());
    };
    reset(rank() * 100000000U);
    const double by_type = round_trips(rounds, [&](bool send) {
      if (send) MPI_Send(array, 1, type, other, 0, MPI_COMM_WORLD);
      if (!send) MPI_Recv(array, 1, type, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    });
    const auto pack_here = [&] {
      pack<<<256, 256>>>(packed, array, places, count);
      CHECK(cudaDeviceSynchronize());
    };
    const auto unpack_here = [&] {
      unpack<<<256, 256>>>(array, packed, places, count);
      CHECK(cudaDeviceSynchronize());
    };
    // Both ranks now have the words of rank 0 at the datatype's places.
    std::vector<unsigned> found(count);
    pack_here();
    CHECK(cudaMemcpy(found.data(), packed, count * sizeof(unsigned), cudaMemcpyDeviceToHost));
    unsigned wrong = 0;
    for (unsigned i = 0; i < count; ++i) wrong += found[i] != its[i] ? 1 : 0;
    const double by_hand = round_trips(rounds, [&](bool send) {
      if (send) {
        pack_here();
        MPI_Send(packed, static_cast<int>(count), MPI_INT, other, 0, MPI_COMM_WORLD);
      } else {
        MPI_Recv(packed, static_cast<int>(count), MPI_INT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        unpack_here();
      }
    });
    const auto look = [&] {
      unsigned first = 0;
      CHECK(cudaMemcpy(&first, packed, sizeof first, cudaMemcpyDeviceToHost));
    };
    const double packing = alone(rounds, [&] {
      position = 0;
      MPI_Pack(array, 1, type, packed, size, &position, MPI_COMM_WORLD);
      look();
    });
    CHECK(cudaMemcpy(found.data(), packed, count * sizeof(unsigned), cudaMemcpyDeviceToHost));
    for (unsigned i = 0; i < count; ++i) wrong += found[i] != its[i] ? 1 : 0;
    const double packing_by_hand = alone(rounds, [&] {
      pack<<<256, 256>>>(packed, array, places, count);
      look();
    });
    if (wrong != 0) std::printf("rank %d: %s: %u words are wrong\n", rank(), name, wrong);
    if (rank() == 0)
      std::printf("%-18s %10d %10.1f %10.1f %7.2f %10.1f %10.1f\n", name, size, by_type, by_hand, by_type / by_hand,
                  packing, packing_by_hand);
  }
  MPI_Finalize();
}
