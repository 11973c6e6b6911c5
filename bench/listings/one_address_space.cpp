// Listing 5.3: one address space. The slabs of a rank are one array over its devices, and
// the kernel reads the rims of neighbouring slabs directly from the other devices'
// memory. Messages between ranks use buffers in host memory, as in listing 5.1.

#include <semaphore>

#include "bench/listings/experiment.h"

using namespace hpe::bench::listings;

namespace {

/// A thread releases a neighbour's semaphore when it has queued a step; it may queue two
/// steps before the neighbour queues one. The thesis uses one semaphore for both
/// neighbours, which cannot distinguish two steps of one neighbour from one step of each.
struct shared {
  std::counting_semaphore<2> left_ready{0}, right_ready{0};
};

void simulate(experiment& e, int id, float* in, float* out, std::vector<shared>& of) {
  std::vector<float> rim_host(halo), halo_host(halo);
  const bool first = id == 0, last = id == e.devices - 1;

  for (int step = 0; step < steps; ++step) {
    e.launch_stencil(id, out + left_rim, in + left_rim, halo);
    e.launch_stencil(id, out + right_rim, in + right_rim, halo);
    e.launch_stencil(id, out + between, in + between, inner);

    if (last && e.right != MPI_PROC_NULL) {  // MPI: send right, receive from the right
      hpe::copy(rim_host.data(), out + right_rim, halo * sizeof(float));
      MPI_Sendrecv(rim_host.data(), halo, MPI_FLOAT, e.right, 0, halo_host.data(), halo,
                   MPI_FLOAT, e.right, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      hpe::copy(out + right_halo, halo_host.data(), halo * sizeof(float));
    }
    if (first && e.left != MPI_PROC_NULL) {  // MPI: send left, receive from the left
      hpe::copy(rim_host.data(), out + left_rim, halo * sizeof(float));
      MPI_Sendrecv(rim_host.data(), halo, MPI_FLOAT, e.left, 1, halo_host.data(), halo,
                   MPI_FLOAT, e.left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      hpe::copy(out + left_halo, halo_host.data(), halo * sizeof(float));
    }

    if (!first)
      of[id - 1].right_ready.release();  // (1a)
    if (!last)
      of[id + 1].left_ready.release();  // (1b)
    if (!first)
      of[id].left_ready.acquire();  // Wait for the neighbours (2)
    if (!last)
      of[id].right_ready.acquire();
    std::swap(in, out);
  }
}

}  // namespace

int main(int argc, char** argv) {
  experiment e(&argc, &argv, "5.3");
  const std::size_t cells = e.devices * slab + 2 * halo;
  const hpe::array<float> even(cells, hpe::block_distribution()),
      odd(cells, hpe::block_distribution());
  e.start(even.data(), 0, e.devices);
  std::vector<shared> of(e.devices);
  e.on_each_device([&](int id) {
    simulate(e, id, even.data() + id * slab, odd.data() + id * slab, of);
  });
  e.compare((steps % 2 == 0 ? even : odd).data(), 0, e.devices);
  return e.report();
}
