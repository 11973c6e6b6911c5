// The references on GPUs, written as in a CUDA program without hpe. cuFFT is loaded at its first use, so that the
// benchmark also starts without cuFFT.

#include <cuda_runtime.h>
#include <cufft.h>
#include <cufftXt.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/libraries/fft_peers.h"

namespace hpe::bench {

namespace {

void expect(int status, const char* what) {
  if (status == 0) return;
  std::fprintf(stderr, "%s: error %d\n", what, status);
  std::exit(1);
}

template <class Function>
Function* function(const char* name, Function*) {
  static void* const library = [] {
    void* opened = dlopen("libcufft.so.12", RTLD_NOW);
    return opened != nullptr ? opened : dlopen("libcufft.so", RTLD_NOW);
  }();
  void* const found = library == nullptr ? nullptr : dlsym(library, name);
  if (found == nullptr) expect(-1, name);
  return reinterpret_cast<Function*>(found);
}
#define CUFFT(name, ...) expect(function(#name, &name)(__VA_ARGS__), #name)
#define CUDA(call) expect(call, #call)

/// Waits for all work queued on all GPUs.
void wait_for_all(int gpus) {
  for (int d = 0; d < gpus; ++d) {
    CUDA(cudaSetDevice(d));
    CUDA(cudaDeviceSynchronize());
  }
}

class on_one final : public peer {
 public:
  explicit on_one(const peer_problem& what) : single_(what.single) {
    CUDA(cudaSetDevice(0));
    long long lengths[2] = {what.rows, what.length};
    const int flat = what.rows == 1 ? 1 : 0;
    const std::size_t bytes = std::size_t(what.rows * what.length * what.batch) * (single_ ? 8 : 16);
    std::size_t work = 0;
    CUFFT(cufftCreate, &plan_);
    CUFFT(cufftMakePlanMany64, plan_, 2 - flat, lengths + flat, nullptr, 1, 0, nullptr, 1, 0,
          single_ ? CUFFT_C2C : CUFFT_Z2Z, what.batch, &work);
    CUDA(cudaMalloc(&in_, bytes));
    CUDA(cudaMalloc(&out_, bytes));
    CUDA(cudaMemset(in_, 1, bytes));
  }
  ~on_one() override {
    CUFFT(cufftDestroy, plan_);
    cudaFree(in_);
    cudaFree(out_);
  }
  void run(int times) override {
    for (int i = 0; i < times; ++i) {
      if (single_)
        CUFFT(cufftExecC2C, plan_, static_cast<cufftComplex*>(in_), static_cast<cufftComplex*>(out_), CUFFT_FORWARD);
      else
        CUFFT(cufftExecZ2Z, plan_, static_cast<cufftDoubleComplex*>(in_), static_cast<cufftDoubleComplex*>(out_),
              CUFFT_FORWARD);
    }
    wait_for_all(1);
  }

 private:
  bool single_;
  cufftHandle plan_ = 0;
  void *in_ = nullptr, *out_ = nullptr;
};

class over_several final : public peer {
 public:
  over_several(std::int64_t length, int gpus, bool ordered) : gpus_(gpus), ordered_(ordered) {
    std::vector<int> list;
    for (int d = 0; d < gpus; ++d) list.push_back(d);
    std::vector<std::size_t> work(static_cast<std::size_t>(gpus));
    CUFFT(cufftCreate, &plan_);
    CUFFT(cufftXtSetGPUs, plan_, gpus, list.data());
    long long n = length;
    CUFFT(cufftMakePlanMany64, plan_, 1, &n, nullptr, 1, 0, nullptr, 1, 0, CUFFT_C2C, 1, work.data());
    CUFFT(cufftXtMalloc, plan_, &data_, CUFFT_XT_FORMAT_INPLACE);
    if (ordered) CUFFT(cufftXtMalloc, plan_, &sorted_, CUFFT_XT_FORMAT_INPLACE);
    for (int d = 0; d < gpus; ++d) {
      CUDA(cudaSetDevice(d));
      CUDA(cudaMemset(data_->descriptor->data[d], 0, data_->descriptor->size[d]));
    }
  }
  ~over_several() override {
    CUFFT(cufftXtFree, data_);
    if (sorted_ != nullptr) CUFFT(cufftXtFree, sorted_);
    CUFFT(cufftDestroy, plan_);
  }
  void run(int times) override {
    for (int i = 0; i < times; ++i) {
      data_->subFormat = CUFFT_XT_FORMAT_INPLACE;
      CUFFT(cufftXtExecDescriptorC2C, plan_, data_, data_, CUFFT_FORWARD);
      if (ordered_) CUFFT(cufftXtMemcpy, plan_, sorted_, data_, CUFFT_COPY_DEVICE_TO_DEVICE);
    }
    wait_for_all(gpus_);
  }

 private:
  int gpus_;
  bool ordered_;
  cufftHandle plan_ = 0;
  cudaLibXtDesc *data_ = nullptr, *sorted_ = nullptr;
};

// Each of two devices holds an array. For each pair of elements a and b, the device of the lower array computes a + b,
// and the device of the upper array computes (a - b) w. mine: the array of this device; other: a copy of the other
// device's array.
__global__ void butterfly(float2* mine, const float2* other, long long count, long long offset, double part,
                          bool upper) {
  for (long long j = blockIdx.x * 256LL + threadIdx.x; j < count; j += gridDim.x * 256LL) {
    const float2 m = mine[j], o = other[j];
    if (!upper) {
      mine[j] = {m.x + o.x, m.y + o.y};
      continue;
    }
    float s, c;
    sincospif(static_cast<float>(-2 * part * static_cast<double>(offset + j)), &s, &c);
    const float2 d{o.x - m.x, o.y - m.y};
    mine[j] = {d.x * c - d.y * s, d.x * s + d.y * c};
  }
}

__global__ void interleave(float2* out, const float2* parts, long long each, int bits) {
  const long long count = each << bits;
  for (long long i = blockIdx.x * 256LL + threadIdx.x; i < count; i += gridDim.x * 256LL) {
    const unsigned r = __brev(static_cast<unsigned>(i) & ((1U << bits) - 1)) >> (32 - bits);
    out[i] = parts[r * each + (i >> bits)];
  }
}

class by_hand final : public peer {
 public:
  by_hand(std::int64_t length, int gpus, scheme copies) : gpus_(gpus), part_(length / gpus), copies_(copies) {
    while (1 << bits_ < gpus) ++bits_;
    const std::size_t bytes = static_cast<std::size_t>(part_) * sizeof(float2);
    for (int d = 0; d < gpus; ++d) {
      CUDA(cudaSetDevice(d));
      for (int other = 0; other < gpus; ++other)
        if (other != d && cudaDeviceEnablePeerAccess(other, 0) != cudaSuccess) cudaGetLastError();
      one it{};
      CUDA(cudaStreamCreate(&it.stream));
      CUDA(cudaMalloc(&it.data, bytes));
      CUDA(cudaMalloc(&it.copy, bytes));
      CUDA(cudaMemset(it.data, 0, bytes));
      CUFFT(cufftPlan1d, &it.plan, static_cast<int>(part_), CUFFT_C2C, 1);
      CUFFT(cufftSetStream, it.plan, it.stream);
      if (copies == scheme::naive) it.host = static_cast<float2*>(std::malloc(bytes));
      if (copies == scheme::pinned) CUDA(cudaMallocHost(&it.host, bytes));
      all_.push_back(it);
    }
  }
  ~by_hand() override {
    for (int d = 0; d < gpus_; ++d) {
      one& it = all_[static_cast<std::size_t>(d)];
      cudaSetDevice(d);
      CUFFT(cufftDestroy, it.plan);
      cudaFree(it.data);
      cudaFree(it.copy);
      if (copies_ == scheme::naive) std::free(it.host);
      if (copies_ == scheme::pinned) cudaFreeHost(it.host);
      cudaStreamDestroy(it.stream);
    }
  }

  void run(int times) override {
    for (int i = 0; i < times; ++i) once();
  }

 private:
  struct one {
    cudaStream_t stream;
    float2 *data, *copy, *host;
    cufftHandle plan;
  };
  one& at(int d) {
    CUDA(cudaSetDevice(d));
    return all_[static_cast<std::size_t>(d)];
  }

  void once() {
    constexpr int blocks = 132 * 8;
    for (int distance = gpus_ / 2; distance > 0; distance /= 2) {
      publish();
      for (int d = 0; d < gpus_; ++d) fetch(d, d ^ distance, 0, part_, 0);
      wait_for_all(gpus_);
      for (int d = 0; d < gpus_; ++d) {
        one& it = at(d);
        butterfly<<<blocks, 256, 0, it.stream>>>(it.data, it.copy, part_, d % distance * part_,
                                                 1.0 / static_cast<double>(2 * distance * part_), (d & distance) != 0);
      }
      wait_for_all(gpus_);
    }
    for (int d = 0; d < gpus_; ++d) CUFFT(cufftExecC2C, at(d).plan, all_[d].data, all_[d].data, CUFFT_FORWARD);
    wait_for_all(gpus_);
    publish();
    const std::int64_t each = part_ / gpus_;
    for (int d = 0; d < gpus_; ++d)
      for (int k = 0; k < gpus_; ++k) fetch(d, (d + k) % gpus_, d * each, each, (d + k) % gpus_ * each);
    wait_for_all(gpus_);
    for (int d = 0; d < gpus_; ++d) {
      one& it = at(d);
      interleave<<<blocks, 256, 0, it.stream>>>(it.data, it.copy, each, bits_);
    }
    wait_for_all(gpus_);
  }

  /// Copies the arrays of all devices to host memory, if the scheme copies through host memory.
  void publish() {
    if (copies_ == scheme::peer) return;
    for (int d = 0; d < gpus_; ++d) {
      one& it = at(d);
      CUDA(cudaMemcpyAsync(it.host, it.data, bytes(part_), cudaMemcpyDeviceToHost, it.stream));
    }
    wait_for_all(gpus_);
  }

  /// Copies `count` elements of the array of device `from`, beginning with element `first`, to element `to` of the
  /// buffer on device d.
  void fetch(int d, int from, std::int64_t first, std::int64_t count, std::int64_t to) {
    one& it = at(d);
    const one& source = all_[static_cast<std::size_t>(from)];
    if (copies_ == scheme::peer)
      CUDA(cudaMemcpyPeerAsync(it.copy + to, d, source.data + first, from, bytes(count), it.stream));
    else
      CUDA(cudaMemcpyAsync(it.copy + to, source.host + first, bytes(count), cudaMemcpyHostToDevice, it.stream));
  }

  static std::size_t bytes(std::int64_t count) { return static_cast<std::size_t>(count) * sizeof(float2); }

  int gpus_;
  std::int64_t part_;
  scheme copies_;
  int bits_ = 0;
  std::vector<one> all_;
};

}  // namespace

std::unique_ptr<peer> make_cufft(const peer_problem& what) { return std::make_unique<on_one>(what); }
std::unique_ptr<peer> make_cufft_over(std::int64_t length, int gpus, bool ordered) {
  return std::make_unique<over_several>(length, gpus, ordered);
}
std::unique_ptr<peer> make_by_hand(std::int64_t length, int gpus, scheme copies) {
  return std::make_unique<by_hand>(length, gpus, copies);
}

}  // namespace hpe::bench
