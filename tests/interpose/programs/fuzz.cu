// Makes random calls, which the seed determines: allocations of every kind, copies of every kind and size, fills,
// kernels, streams, events, peer access, and calls with wrong arguments. Prints a digest of all results and of all data
// that were read back.
//
//   fuzz [calls] [seed] [touch]
//
// With "touch", CPU code reads some results and writes some data through device pointers, which needs hpe.
#include <cstring>
#include <string>
#include <vector>

#include "check.h"

__global__ void mix(std::uint64_t* p, std::size_t n, std::uint64_t k) {
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += std::size_t{gridDim.x} * blockDim.x)
    p[i] = (p[i] ^ k) * 0x100000001b3ULL;
}

struct object {
  std::uint64_t* data;
  std::size_t words;
  int kind;  // the function that allocated the object: 0 cudaMalloc, 1 cudaMallocAsync, 2 cudaMallocManaged
};

int main(int argc, char** argv) {
  const long calls = argc > 1 ? std::atol(argv[1]) : 100000;
  numbers random(argc > 2 ? std::atol(argv[2]) : 1);
  const bool touch = argc > 3 && std::strcmp(argv[3], "touch") == 0;
  std::uint64_t all = 0;
  long made = 0;
  const auto note = [&](std::uint64_t value) { all = (all ^ value) * 0x100000001b3ULL; };
  const auto did = [&](cudaError_t result) {
    ++made;
    note(result);
    if (result != cudaSuccess) cudaGetLastError();
    return result == cudaSuccess;
  };
  constexpr std::size_t most = std::size_t{6} << 20;  // the largest number of bytes in an object
  std::vector<std::uint64_t> host(most / 8), back(most / 8);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = i * i;
  std::uint64_t* pinned;
  CHECK(cudaMallocHost(&pinned, most));
  cudaStream_t streams[4] = {nullptr};
  for (int s = 1; s < 4; ++s) CHECK(cudaStreamCreate(&streams[s]));
  cudaEvent_t event;
  CHECK(cudaEventCreate(&event));
  std::vector<object> objects;
  // All work on one object is queued on one stream, so that the results do not depend on timing.
  const auto stream_of = [&](const object& o) { return streams[o.words % 4]; };
  while (made < calls) {
    const std::uint64_t choice = random.below(objects.empty() ? 1 : 100);
    if (choice < 4 && objects.size() < 40) {
      object o{nullptr, 1 + random.below(random.below(4) == 0 ? most / 8 : 2000), int(random.below(8))};
      if (o.kind > 2) o.kind = o.kind % 2;
      const std::size_t bytes = o.words * 8;
      const bool good = o.kind == 0   ? did(cudaMalloc(&o.data, bytes))
                        : o.kind == 1 ? did(cudaMallocAsync(&o.data, bytes, stream_of(o)))
                                      : did(cudaMallocManaged(&o.data, bytes));
      if (!good) continue;
      if (o.kind == 1) did(cudaStreamSynchronize(stream_of(o)));
      did(cudaMemsetAsync(o.data, 0, bytes, stream_of(o)));
      did(cudaStreamSynchronize(stream_of(o)));
      objects.push_back(o);
      continue;
    }
    if (objects.empty()) continue;
    const std::size_t which = random.below(objects.size());
    const object o = objects[which];
    const std::size_t at = random.below(o.words), n = 1 + random.below(o.words - at), bytes = n * 8;
    const cudaStream_t stream = stream_of(o);
    const auto settle = [&] { did(cudaStreamSynchronize(stream)); };
    if (choice < 8) {
      settle();
      did(o.kind == 1 ? cudaFreeAsync(o.data, stream) : cudaFree(o.data));
      objects.erase(objects.begin() + long(which));
    } else if (choice < 20) {
      settle();
      const bool direct = random.below(2) == 0 && o.kind != 2;
      if (touch && direct) {
        ++made;
        note(0);
        std::memcpy(o.data + at, host.data() + at, bytes);
      } else {
        did(cudaMemcpy(o.data + at, host.data() + at, bytes, cudaMemcpyHostToDevice));
      }
    } else if (choice < 32) {
      settle();
      const bool direct = random.below(2) == 0 && o.kind != 2;
      if (touch && direct) {
        ++made;
        note(0);
        note(digest(o.data + at, bytes));
      } else {
        did(cudaMemcpy(back.data(), o.data + at, bytes, cudaMemcpyDeviceToHost));
        note(digest(back.data(), bytes));
      }
    } else if (choice < 40) {
      did(cudaMemcpyAsync(o.data + at, host.data(), bytes, cudaMemcpyDefault, stream));
      host[random.below(n)] ^= random.next();
    } else if (choice < 46) {
      did(cudaMemcpyAsync(back.data(), o.data + at, bytes, cudaMemcpyDefault, stream));
      settle();
      note(digest(back.data(), bytes));
    } else if (choice < 50) {
      settle();
      std::memcpy(pinned, host.data() + at, bytes);
      did(cudaMemcpyAsync(o.data + at, pinned, bytes, cudaMemcpyHostToDevice, stream));
      settle();
    } else if (choice < 56) {
      const object& other = objects[random.below(objects.size())];
      const std::size_t common = std::min(o.words, other.words);
      if (other.data == o.data) continue;
      did(cudaStreamSynchronize(stream_of(other)));
      did(cudaMemcpyAsync(o.data, other.data, common * 8, cudaMemcpyDeviceToDevice, stream));
      settle();
    } else if (choice < 64) {
      did(cudaMemsetAsync(o.data + at, int(random.below(256)), bytes, stream));
    } else if (choice < 84) {
      mix<<<unsigned(1 + random.below(32)), 128, 0, stream>>>(o.data + at, n, random.next());
      did(cudaGetLastError());
    } else if (choice < 88) {
      did(cudaEventRecord(event, stream));
      did(cudaStreamWaitEvent(streams[random.below(4)], event, 0));
    } else if (choice < 92) {
      const std::size_t height = 1 + random.below(16), width = n / height * 8;
      if (width == 0) continue;
      did(cudaMemcpy2DAsync(o.data + at, width, host.data(), width, width, height, cudaMemcpyHostToDevice, stream));
    } else if (choice < 94) {
      settle();
      did(cudaMemcpy(o.data, reinterpret_cast<void*>(std::uintptr_t{4096}), 0, cudaMemcpyHostToDevice));
      did(cudaMemcpy(o.data, o.data, 8, cudaMemcpyHostToDevice));
      did(cudaMemset(nullptr, 1, 8));
    } else if (choice < 96) {
      cudaPointerAttributes about{};
      did(cudaPointerGetAttributes(&about, o.data + at));
      note(about.type);
      note(about.device);
      did(cudaPointerGetAttributes(&about, host.data()));
      note(about.type);
    } else {
      did(cudaStreamQuery(streams[0]) == cudaErrorNotReady ? cudaSuccess : cudaSuccess);
      settle();
    }
  }
  for (const object& o : objects) {
    CHECK(cudaMemcpy(back.data(), o.data, o.words * 8, cudaMemcpyDefault));
    note(digest(back.data(), o.words * 8));
  }
  std::printf("%016llx\n", (unsigned long long)all);
}
