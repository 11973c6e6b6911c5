// Two ranks exchange device memory, before and after CPU code has touched it. Rank 0 prints whether all messages were
// right, and how many buffers in device memory hpe has passed to the MPI library (aware_library.cpp).
#include <cuda.h>
#include <dlfcn.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <vector>

namespace {

// Rank 0 sends the memory, which contains `value`, and receives it back with numbers that are greater by one.
bool exchange(int rank, CUdeviceptr memory, std::vector<int>& host, int value) {
  auto* const buffer = reinterpret_cast<int*>(memory);
  const int count = static_cast<int>(host.size());
  const int other = 1 - rank;
  if (rank == 0) {
    MPI_Send(buffer, count, MPI_INT, other, 0, MPI_COMM_WORLD);
    MPI_Recv(buffer, count, MPI_INT, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(buffer, count, MPI_INT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    cuMemcpyDtoH(host.data(), memory, host.size() * sizeof(int));
    for (int& each : host) ++each;
    cuMemcpyHtoD(memory, host.data(), host.size() * sizeof(int));
    MPI_Send(buffer, count, MPI_INT, other, 1, MPI_COMM_WORLD);
  }
  cuMemcpyDtoH(host.data(), memory, host.size() * sizeof(int));
  return std::all_of(host.begin(), host.end(), [&](int each) { return each == value + 1; });
}

}  // namespace

int main(int argc, char** argv) {
  constexpr std::size_t count = 300000;
  cuInit(0);
  CUcontext context{};
  cuDevicePrimaryCtxRetain(&context, 0);
  cuCtxSetCurrent(context);
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  CUdeviceptr memory = 0;
  cuMemAlloc(&memory, count * sizeof(int));
  const auto tell = reinterpret_cast<void (*)(CUdeviceptr, std::size_t)>(::dlsym(RTLD_DEFAULT, "aware_of"));
  tell(memory, count * sizeof(int));
  std::vector<int> host(count, 5);
  cuMemcpyHtoD(memory, host.data(), count * sizeof(int));
  int right = exchange(rank, memory, host, 5) ? 1 : 0;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Send_init(reinterpret_cast<int*>(memory), count, MPI_INT, 1 - rank, 2, MPI_COMM_WORLD, &request);
  std::fill_n(reinterpret_cast<int*>(memory), count, 8);
  MPI_Request_free(&request);
  right &= exchange(rank, memory, host, 8) ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &right, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  const auto passed = reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "aware_device_buffers"));
  if (rank == 0) std::printf("messages: all %s, %d device buffers for MPI\n", right != 0 ? "right" : "wrong", passed());
  MPI_Finalize();
}
