#include "bench/mpi/end_points.h"

#define OMPI_SKIP_MPICXX
#include <mpi.h>

namespace hpe::bench {

namespace {

void mpi_send(const void* p, std::size_t bytes) {
  MPI_Send(p, static_cast<int>(bytes), MPI_BYTE, 1 - rank(), 0, MPI_COMM_WORLD);
}

void mpi_receive(void* p, std::size_t bytes) {
  MPI_Recv(p, static_cast<int>(bytes), MPI_BYTE, 1 - rank(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

}  // namespace

int rank() {
  int r = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &r);
  return r;
}

void host_memory::send(std::size_t bytes) { mpi_send(memory_.data(), bytes); }
void host_memory::receive(std::size_t bytes) { mpi_receive(memory_.data(), bytes); }

device_memory::device_memory(int device, std::size_t bytes) : memory_(bytes, hpe::on_device(device)) {
  hpeMemset(memory_.data(), 1, bytes);
}

void device_memory::send(std::size_t bytes) { mpi_send(memory_.data(), bytes); }

void device_memory::receive(std::size_t bytes) {
  mpi_receive(memory_.data(), bytes);
  hpe::synchronize();
}

void one_direction::send(std::size_t bytes) { sender_ ? from_.send(bytes) : mpi_send(nullptr, 0); }
void one_direction::receive(std::size_t bytes) { sender_ ? mpi_receive(nullptr, 0) : to_.receive(bytes); }

void staged_by_hand::send(std::size_t bytes) {
  device_.to_host(staging_, bytes);
  mpi_send(staging_, bytes);
}

void staged_by_hand::receive(std::size_t bytes) {
  mpi_receive(staging_, bytes);
  device_.to_device(staging_, bytes);
}

void exchange(end_point& mine, std::size_t bytes, unsigned turns) {
  for (unsigned i = 0; i < turns; ++i) {
    if (rank() == 0) mine.send(bytes);
    mine.receive(bytes);
    if (rank() == 1) mine.send(bytes);
  }
}

}  // namespace hpe::bench
