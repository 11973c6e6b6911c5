// Opens memory of another process, which contains 100,000 ints with the same value, and doubles the ints.
//
//     cudart-ipc-program handle value

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "handle_text.h"
#include "ordered_kernels.h"

namespace {

constexpr int count = 100'000;

/// Ends the program if a call fails.
void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorName(result));
  std::exit(1);
}

std::vector<int> values_of(const int* memory) {
  std::vector<int> result(count);
  check(cudaMemcpy(result.data(), memory, count * sizeof(int), cudaMemcpyDeviceToHost), "cudaMemcpy");
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto handle = from_text<cudaIpcMemHandle_t>(argv[1]);
  const int value = std::stoi(argv[2]);
  void* opened = nullptr;
  void* again = nullptr;
  check(cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess), "open");
  check(cudaIpcOpenMemHandle(&again, handle, cudaIpcMemLazyEnablePeerAccess), "open again");
  if (again != opened) return 3;
  auto* const values = static_cast<int*>(opened);
  if (values_of(values) != std::vector<int>(count, value)) return 4;
  check(double_all(values, count, nullptr), "kernel");
  check(cudaDeviceSynchronize(), "synchronize");
  if (values_of(values) != std::vector<int>(count, 2 * value)) return 5;
  check(cudaIpcCloseMemHandle(opened), "close");
  check(cudaIpcCloseMemHandle(opened), "close again");
  return cudaIpcCloseMemHandle(opened) == cudaErrorInvalidValue ? 0 : 6;
}
