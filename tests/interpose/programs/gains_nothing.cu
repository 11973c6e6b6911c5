// A program that gains nothing from hpe: launches in a loop, and small copies of pinned memory. Prints times, by which
// a user can compare runs with and without `hpe run`.
#include <chrono>

#include "check.h"

__global__ void nothing(int*) {}

template <class Work>
static double seconds(Work work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

int main() {
  constexpr int launches = 200000, copies = 40000;
  int *device, *pinned;
  CHECK(cudaMalloc(&device, 4096));
  CHECK(cudaMallocHost(&pinned, 4096));
  const auto launch = [&](int count) {
    for (int i = 0; i < count; ++i) {
      nothing<<<1, 32>>>(device);
      if (i % 500 == 499) CHECK(cudaDeviceSynchronize());
    }
  };
  launch(1000);
  const double launching = seconds([&] { launch(launches); });
  const double copying = seconds([&] {
    for (int i = 0; i < copies; ++i) CHECK(cudaMemcpy(device, pinned, 4096, cudaMemcpyHostToDevice));
  });
  std::printf("launch %.1f ns\ncopy %.1f ns\nloops %.6f s\n", launching / launches * 1e9, copying / copies * 1e9,
              launching + copying);
}
