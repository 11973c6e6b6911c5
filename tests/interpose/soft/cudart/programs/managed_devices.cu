// The host and all devices share one instance of each managed variable. First the host and the devices write in turns,
// then the devices write separate parts at the same time. Prints errors, or "right".
#include <vector>

#include "tests/interpose/programs/check.h"

constexpr int cells = 1000;

struct pair_of {
  int number;
  double half;
};

__managed__ int turns = 5;
__managed__ pair_of pair = {8, 4.0};
__managed__ int table[cells];  // initially zeros
__managed__ int* list = nullptr;
__device__ int own = 40;  // each device has its own instance

__global__ void take_turn(int* seen) {
  seen[0] = turns++;
  pair.number *= 2;
  pair.half = pair.number / 2.0;
  seen[1] = ++own;
  if (list != nullptr) seen[2] = list[1];
}

__global__ void add_to_part(int device, int devices, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < cells && i * devices / cells == device) table[i] += k + device;
}

static void demand(bool good, const char* what) {
  if (good) return;
  std::printf("WRONG: %s\n", what);
  std::exit(1);
}

int main() {
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  std::vector<int*> seen(devices);
  for (int d = 0; d < devices; ++d) {
    CHECK(cudaSetDevice(d));
    CHECK(cudaMalloc(&seen[d], 3 * sizeof(int)));
  }
  int* numbers;
  CHECK(cudaMallocManaged(&numbers, 2 * sizeof(int)));
  numbers[1] = 77;
  int expected = 5;
  int number = 8;
  for (int round = 0; round < 3; ++round) {
    for (int d = devices - 1; d >= 0; --d) {
      CHECK(cudaSetDevice(d));
      take_turn<<<1, 1>>>(seen[d]);
      CHECK(cudaDeviceSynchronize());
      int found[3];
      CHECK(cudaMemcpy(found, seen[d], sizeof found, cudaMemcpyDefault));
      demand(found[0] == expected++, "the value that a device found");
      demand(turns == expected, "the value that the host found");
      number *= 2;
      demand(pair.number == number && pair.half == number / 2.0, "a structure");
      demand(found[1] == 41 + round, "a variable of the device's own");
      demand(round == 0 || found[2] == 77, "a managed pointer to managed memory");
    }
    turns = expected += 100;  // the host's turn
    list = numbers;
  }
  for (int k = 0; k < 20; ++k) {
    for (int d = 0; d < devices; ++d) {
      CHECK(cudaSetDevice(d));
      add_to_part<<<(cells + 127) / 128, 128>>>(d, devices, k);
    }
  }
  for (int d = 0; d < devices; ++d) {
    CHECK(cudaSetDevice(d));
    CHECK(cudaDeviceSynchronize());
  }
  for (int i = 0; i < cells; ++i) demand(table[i] == 190 + 20 * (i * devices / cells), "an element of the table");

  void* first = nullptr;
  for (int d = 0; d < devices; ++d) {
    CHECK(cudaSetDevice(d));
    void* address = nullptr;
    CHECK(cudaGetSymbolAddress(&address, turns));
    demand(first == nullptr || address == first, "the address on a device");
    first = address;
    const int value = 900 + d;
    CHECK(cudaMemcpyToSymbol(turns, &value, sizeof value));
    demand(turns == value, "what a copy to the symbol wrote");
  }
  demand(first == &turns, "the address on the host");
  std::printf("managed variables on %d devices: right\n", devices);
}
