// Imports two pools of another process, and imports one pointer of each pool into each of the two pools. The exit
// status has a bit for each combination in which the memory has the pool's value: 1 and 8 for the right combinations, 2
// and 4 for a pointer of the other pool.
//
//     cudart-ipc-pool-program descriptor descriptor pointer pointer

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

#include "handle_text.h"

int main(int argc, char** argv) {
  if (argc != 5) return 100;
  int result = 0;
  for (int p = 0; p < 2; ++p) {
    cudaMemPool_t pool = nullptr;
    auto* const descriptor = reinterpret_cast<void*>(static_cast<std::intptr_t>(std::stoi(argv[1 + p])));
    if (cudaMemPoolImportFromShareableHandle(&pool, descriptor, cudaMemHandleTypePosixFileDescriptor, 0) != cudaSuccess)
      return 101;
    for (int d = 0; d < 2; ++d) {
      auto data = from_text<cudaMemPoolPtrExportData>(argv[3 + d]);
      void* there = nullptr;
      const cudaError_t imported = cudaMemPoolImportPointer(&there, pool, &data);
      if (imported == cudaErrorInvalidValue) continue;
      int value = 0;
      if (imported != cudaSuccess || cudaMemcpy(&value, there, sizeof value, cudaMemcpyDeviceToHost) != cudaSuccess)
        return 102;
      if (value == 10 + d) result |= 1 << (2 * p + d);
      if (cudaFree(there) != cudaSuccess) return 103;
    }
  }
  return result;
}
