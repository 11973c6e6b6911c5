// Calls the functions that return whether MPI accepts device memory. Rank 0 prints the results, and the name of the
// library that defines MPI_Send.
#include <dlfcn.h>
#include <mpi.h>

#include <cstdio>
#include <cstring>

extern "C" {
int MPIX_Query_cuda_support();
int MPIX_GPU_query_support(int type, int* is_supported) __attribute__((weak));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int of_cuda = -1, of_hip = -1;
  if (MPIX_GPU_query_support != nullptr) {
    MPIX_GPU_query_support(0, &of_cuda);
    MPIX_GPU_query_support(2, &of_hip);
  }
  Dl_info about{};
  ::dladdr(::dlsym(RTLD_DEFAULT, "MPI_Send"), &about);
  if (rank == 0)
    std::printf("support %d, GPU %d, HIP %d, by %s\n", MPIX_Query_cuda_support(), of_cuda, of_hip,
                about.dli_fname == nullptr ? "nobody" : std::strrchr(about.dli_fname, '/') + 1);
  MPI_Finalize();
}
