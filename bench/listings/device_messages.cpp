// Listing 5.4: one coherent address space. MPI functions get pointers to device memory.
// Ranks exchange halos while devices compute the cells between the rims. The thesis uses
// a thread for each device, because its launches return only when the kernel has ended.
// Launches of hpe return at once, and hpe orders launches and messages by the ranges that
// they use. Therefore, one thread queues all launches and messages, without semaphores.

#include "bench/listings/experiment.h"

using namespace hpe::bench::listings;

namespace {

void simulate(const experiment& e, hpe::array<float>& in, hpe::array<float>& out) {
  const std::size_t last = (e.devices - 1) * slab;  // where the last device's slab begins

  for (int step = 0; step < steps; ++step) {
    for (int id = 0; id < e.devices; ++id) {
      e.launch_stencil(id, &out[id * slab + left_rim], &in[id * slab + left_rim], halo);
      e.launch_stencil(id, &out[id * slab + right_rim], &in[id * slab + right_rim], halo);
    }

    MPI_Request requests[4];  // a message to MPI_PROC_NULL is not sent
    MPI_Isend(&out[last + right_rim], halo, MPI_FLOAT, e.right, 0, MPI_COMM_WORLD,
              &requests[0]);
    MPI_Irecv(&out[last + right_halo], halo, MPI_FLOAT, e.right, 1, MPI_COMM_WORLD,
              &requests[1]);
    MPI_Isend(&out[left_rim], halo, MPI_FLOAT, e.left, 1, MPI_COMM_WORLD, &requests[2]);
    MPI_Irecv(&out[left_halo], halo, MPI_FLOAT, e.left, 0, MPI_COMM_WORLD, &requests[3]);

    for (int id = 0; id < e.devices; ++id)
      e.launch_stencil(id, &out[id * slab + between], &in[id * slab + between], inner);

    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    std::swap(in, out);
  }
}

}  // namespace

int main(int argc, char** argv) {
  experiment e(&argc, &argv, "5.4");
  const std::size_t cells = e.devices * slab + 2 * halo;
  hpe::array<float> in(cells, hpe::block_distribution()),
      out(cells, hpe::block_distribution());
  e.start(in.data(), 0, e.devices);
  simulate(e, in, out);
  e.compare(in.data(), 0, e.devices);
  return e.report();
}
