// The cost of a launch for the calling thread: medians over batches, in nanoseconds. The stand-in does nothing for a
// null kernel, so with it the difference between runs with and without `hpe run` is the cost of hpe.
#include <cuda.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

int main() {
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 3;
  cuCtxSetCurrent(context);
  constexpr int launches = 100000;
  std::array<double, 41> batches{};
  for (double& batch : batches) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < launches; ++i)
      if (cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) != CUDA_SUCCESS) return 4;
    batch = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / launches;
  }
  std::sort(batches.begin(), batches.end());
  std::printf("ns per launch: median %.2f, fastest %.2f, quarter %.2f\n", batches[batches.size() / 2], batches.front(),
              batches[batches.size() / 4]);
}
