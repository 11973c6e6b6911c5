// Listing 5.1: the program without the HPE model, written as for CUDA 3: a thread uses
// only the memory of its own device. Threads exchange halos through buffers in host
// memory: one thread fills a buffer, and its neighbour empties it. Semaphores order the
// two.

#include <semaphore>

#include "bench/listings/experiment.h"

using namespace hpe::bench::listings;

namespace {

/// The buffers and semaphores of a thread, which the threads of the neighbouring slabs
/// also use.
struct shared {
  std::vector<float> left_rim_host = std::vector<float>(halo),
                     right_rim_host = std::vector<float>(halo);
  std::binary_semaphore left_halo_full{0},
      right_halo_full{0};  // the neighbour has filled its buffer
  std::binary_semaphore left_rim_taken{0},
      right_rim_taken{0};  // the neighbour has emptied this thread's buffer
};

void simulate(experiment& e, int id, std::vector<shared>& of) {
  hpe::array<float> in(slab + 2 * halo, hpe::on_device(id)),
      out(slab + 2 * halo, hpe::on_device(id));
  std::vector<float> halo_host(halo);
  const bool first = id == 0, last = id == e.devices - 1;
  e.start(in.data(), id);

  for (int step = 0; step < steps; ++step) {
    e.launch_stencil(id, &out[left_rim], &in[left_rim], halo);
    e.launch_stencil(id, &out[right_rim], &in[right_rim], halo);
    e.launch_stencil(id, &out[between], &in[between], inner);

    // Copy the rims to the host (1a, 1b)
    hpe::copy(of[id].left_rim_host.data(), &out[left_rim], halo * sizeof(float));
    hpe::copy(of[id].right_rim_host.data(), &out[right_rim], halo * sizeof(float));
    if (!first)
      of[id - 1].right_halo_full.release();  // (2a)
    if (!last)
      of[id + 1].left_halo_full.release();  // (2b)

    if (last && e.right != MPI_PROC_NULL) {  // MPI: send right, receive from the right
      MPI_Sendrecv(of[id].right_rim_host.data(), halo, MPI_FLOAT, e.right, 0,
                   halo_host.data(), halo, MPI_FLOAT, e.right, 1, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
      hpe::copy(&out[right_halo], halo_host.data(), halo * sizeof(float));
    }
    if (first && e.left != MPI_PROC_NULL) {  // MPI: send left, receive from the left
      MPI_Sendrecv(of[id].left_rim_host.data(), halo, MPI_FLOAT, e.left, 1,
                   halo_host.data(), halo, MPI_FLOAT, e.left, 0, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
      hpe::copy(&out[left_halo], halo_host.data(), halo * sizeof(float));
    }

    if (!first) {  // Update the left halo (3a, 4a, 5a)
      of[id].left_halo_full.acquire();
      hpe::copy(&out[left_halo], of[id - 1].right_rim_host.data(), halo * sizeof(float));
      of[id - 1].right_rim_taken.release();
    }
    if (!last) {  // Update the right halo (3b, 4b, 5b)
      of[id].right_halo_full.acquire();
      hpe::copy(&out[right_halo], of[id + 1].left_rim_host.data(), halo * sizeof(float));
      of[id + 1].left_rim_taken.release();
    }

    if (!first)
      of[id].left_rim_taken.acquire();  // Wait for the neighbours (6a, 6b)
    if (!last)
      of[id].right_rim_taken.acquire();
    std::swap(in, out);
  }
  e.compare(in.data(), id);
}

}  // namespace

int main(int argc, char** argv) {
  experiment e(&argc, &argv, "5.1");
  std::vector<shared> of(e.devices);
  e.on_each_device([&](int id) { simulate(e, id, of); });
  return e.report();
}
