// Listing 5.2: threads share the devices. Each thread copies its halos from the memory of
// the neighbouring devices. Messages between ranks use buffers in host memory, as in
// listing 5.1.

#include <semaphore>

#include "bench/listings/experiment.h"

using namespace hpe::bench::listings;

namespace {

/// The fields on a device, which all threads use, and the semaphores of the device's
/// thread.
struct shared {
  hpe::array<float> in, out;
  std::binary_semaphore left_halo_ready{0},
      right_halo_ready{0};  // the neighbour has queued the computation of its rims
  std::binary_semaphore left_rim_taken{0},
      right_rim_taken{0};  // the neighbour has queued its copy of this rim
};

void simulate(experiment& e, int id, std::vector<shared>& of) {
  auto& [in, out, left_halo_ready, right_halo_ready, left_rim_taken, right_rim_taken] =
      of[id];
  std::vector<float> rim_host(halo), halo_host(halo);
  const bool first = id == 0, last = id == e.devices - 1;

  for (int step = 0; step < steps; ++step) {
    e.launch_stencil(id, &out[left_rim], &in[left_rim], halo);
    e.launch_stencil(id, &out[right_rim], &in[right_rim], halo);
    e.launch_stencil(id, &out[between], &in[between], inner);
    if (!first)
      of[id - 1].right_halo_ready.release();  // (1a)
    if (!last)
      of[id + 1].left_halo_ready.release();  // (1b)

    if (last && e.right != MPI_PROC_NULL) {  // MPI: send right, receive from the right
      hpe::copy(rim_host.data(), &out[right_rim], halo * sizeof(float));
      MPI_Sendrecv(rim_host.data(), halo, MPI_FLOAT, e.right, 0, halo_host.data(), halo,
                   MPI_FLOAT, e.right, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      hpe::copy(&out[right_halo], halo_host.data(), halo * sizeof(float));
    }
    if (first && e.left != MPI_PROC_NULL) {  // MPI: send left, receive from the left
      hpe::copy(rim_host.data(), &out[left_rim], halo * sizeof(float));
      MPI_Sendrecv(rim_host.data(), halo, MPI_FLOAT, e.left, 1, halo_host.data(), halo,
                   MPI_FLOAT, e.left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      hpe::copy(&out[left_halo], halo_host.data(), halo * sizeof(float));
    }

    if (!first) {  // Update the left halo (2a, 3a, 4a)
      left_halo_ready.acquire();
      hpe::copy(&out[left_halo], &of[id - 1].out[right_rim], halo * sizeof(float));
      of[id - 1].right_rim_taken.release();
    }
    if (!last) {  // Update the right halo (2b, 3b, 4b)
      right_halo_ready.acquire();
      hpe::copy(&out[right_halo], &of[id + 1].out[left_rim], halo * sizeof(float));
      of[id + 1].left_rim_taken.release();
    }

    if (!first)
      left_rim_taken.acquire();  // Wait for the neighbours (5a, 5b)
    if (!last)
      right_rim_taken.acquire();
    std::swap(in, out);
  }
  e.compare(in.data(), id);
}

}  // namespace

int main(int argc, char** argv) {
  experiment e(&argc, &argv, "5.2");
  std::vector<shared> of(e.devices);
  for (int id = 0; id < e.devices; ++id) {
    of[id].in = hpe::array<float>(slab + 2 * halo, hpe::on_device(id));
    of[id].out = hpe::array<float>(slab + 2 * halo, hpe::on_device(id));
    e.start(of[id].in.data(), id);
  }
  e.on_each_device([&](int id) { simulate(e, id, of); });
  return e.report();
}
