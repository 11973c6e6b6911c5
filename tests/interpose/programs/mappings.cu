// Maps memory in two pieces in one range of addresses, unmaps the memory and maps it again. Also uses pitched memory.
// With the argument "touch", CPU code uses the device pointers, which needs hpe; the output is the same.
#include <cuda.h>

#include <cstring>
#include <vector>

#include "check.h"

__global__ void add(std::uint64_t* p, std::size_t n, std::uint64_t k) {
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += std::size_t{gridDim.x} * blockDim.x) p[i] += k;
}

#define DRIVER(call)                                                                              \
  do {                                                                                            \
    const CUresult driver_result = (call);                                                        \
    if (driver_result != CUDA_SUCCESS) return std::printf("%s: %d\n", #call, driver_result), 1;   \
  } while (false)

static bool touch = false;

static void put(std::uint64_t* device, const std::vector<std::uint64_t>& host) {
  if (touch) {
    std::memcpy(device, host.data(), host.size() * 8);
  } else {
    CHECK(cudaMemcpy(device, host.data(), host.size() * 8, cudaMemcpyHostToDevice));
  }
}

static std::uint64_t sum(const std::uint64_t* device, std::size_t n) {
  if (touch) return digest(device, n * 8);
  std::vector<std::uint64_t> host(n);
  CHECK(cudaMemcpy(host.data(), device, n * 8, cudaMemcpyDeviceToHost));
  return digest(host.data(), n * 8);
}

int main(int argc, char** argv) {
  touch = argc > 1 && std::strcmp(argv[1], "touch") == 0;
  CHECK(cudaFree(nullptr));
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  std::size_t piece = 0;
  DRIVER(cuMemGetAllocationGranularity(&piece, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CUdeviceptr base = 0;
  DRIVER(cuMemAddressReserve(&base, 2 * piece, 0, 0, 0));
  const std::size_t n = 2 * piece / 8;
  std::vector<std::uint64_t> host(n);
  for (int round = 0; round < 4; ++round) {
    CUmemGenericAllocationHandle memory[2];
    for (int k = 0; k < 2; ++k) {
      DRIVER(cuMemCreate(&memory[k], piece, &properties, 0));
      DRIVER(cuMemMap(base + k * piece, piece, 0, memory[k], 0));
    }
    CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    DRIVER(cuMemSetAccess(base, 2 * piece, &access, 1));
    auto* const p = reinterpret_cast<std::uint64_t*>(base);
    for (std::size_t i = 0; i < n; ++i) host[i] = i * (round + 3);
    put(p, host);
    add<<<32, 256>>>(p, n, 5);
    std::printf("mapped, round %d: %016llx\n", round, (unsigned long long)sum(p, n));
    add<<<32, 256>>>(p, n / 2, 6);
    std::printf("again: %016llx\n", (unsigned long long)sum(p + n / 2 - 100, 200));
    CHECK(cudaDeviceSynchronize());
    for (int k = 0; k < 2; ++k) {
      DRIVER(cuMemUnmap(base + k * piece, piece));
      DRIVER(cuMemRelease(memory[k]));
    }
  }
  DRIVER(cuMemAddressFree(base, 2 * piece));

  std::uint64_t* pitched = nullptr;
  std::size_t pitch = 0;
  CHECK(cudaMallocPitch(&pitched, &pitch, 1000, 100));
  CHECK(cudaMemset(pitched, 1, pitch * 100));
  host.resize(pitch / 8 * 50);
  put(pitched, host);
  add<<<4, 64>>>(pitched, pitch / 8 * 100, 1);
  std::printf("pitched: %016llx\n", (unsigned long long)sum(pitched, pitch / 8 * 100));
  CHECK(cudaFree(pitched));
}
