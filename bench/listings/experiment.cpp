#include "bench/listings/experiment.h"

#include <algorithm>
#include <cstdio>
#include <random>
#include <thread>

#include "apps/modules/modules.h"

namespace hpe::bench::listings {

namespace {

/// Draws random values for all cells, so that the results differ from the host's if a
/// halo arrives a step late.
std::vector<float> random_field(std::size_t slabs) {
  std::vector<float> field(slabs * slab + 2 * halo);
  std::minstd_rand numbers;
  std::generate(field.begin() + halo, field.end() - halo, [&] {
    return static_cast<float>(numbers()) / static_cast<float>(std::minstd_rand::max());
  });
  return field;
}

std::vector<float> on_the_host(std::vector<float> in) {
  std::vector<float> out(in.size());
  for (int step = 0; step < steps; ++step) {
    const stencil s{in.data() + halo, out.data() + halo, in.size() - 2 * halo};
    for (std::uint64_t cell = 0; cell < s.cells; ++cell) s.out[cell] = stepped(s, cell);
    std::swap(in, out);
  }
  return in;
}

}  // namespace

experiment::experiment(int* argc, char*** argv, std::string listing)
    : devices(device_count()),
      listing_(std::move(listing)),
      kernel_(hpe::module(modules::require("libhpe-listings-kernels.so")),
              "listings_step") {
  int provided = 0;
  MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided < MPI_THREAD_MULTIPLE)
    throw error(
        HPE_ERROR_NOT_SUPPORTED,
        "threads cannot call this MPI library at the same time (MPI_THREAD_MULTIPLE)");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (rank > 0)
    left = rank - 1;
  if (rank < ranks - 1)
    right = rank + 1;
  first_ = random_field(static_cast<std::size_t>(ranks) * devices);
  last_ = on_the_host(first_);
}

const float* experiment::part(const std::vector<float>& field, int id) const {
  return field.data() + (static_cast<std::size_t>(rank) * devices + id) * slab;
}

void experiment::start(float* field, int id, int slabs) const {
  std::copy_n(part(first_, id), slabs * slab + 2 * halo, field);
}

void experiment::launch_stencil(int device, float* out, const float* in,
                                std::size_t cells) const {
  launch_on(device, kernel_, grid(16), stencil{in, out, cells},
            hpe::in(std::span(in - halo, cells + 2 * halo)),
            inout(std::span(out, cells)));
}

void experiment::on_each_device(const std::function<void(int)>& run) const {
  std::vector<std::jthread> threads;
  for (int id = 0; id < devices; ++id) threads.emplace_back(run, id);
}

void experiment::compare(const float* field, int id, int slabs) {
  const float* const expected = part(last_, id) + halo;
  if (!std::equal(expected, expected + slabs * slab, field + halo))
    same_ = false;
}

int experiment::report() {
  int same = same_ ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &same, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (rank == 0)
    std::printf("listing %s, %d steps, ranks: %d, devices of each rank: %d: %s\n",
                listing_.c_str(), steps, ranks, devices,
                same == 1 ? "every bit as on the host" : "differs from the host");
  MPI_Finalize();
  return same == 1 ? 0 : 1;
}

}  // namespace hpe::bench::listings
