// Each function first makes its CUDA context current, because hpe makes other contexts current on the same thread.
#include "bench/common/driver_calls.h"
#include "bench/mpi/by_hand.h"

namespace hpe::bench {

namespace {

class gpu_memory {
 public:
  gpu_memory(int device, std::size_t bytes) {
    CALL(cuInit, 0);
    CALL(cuDeviceGet, &device_, device);
    CALL(cuDevicePrimaryCtxRetain, &context_, device_);
    use();
    CALL(cuMemAlloc, &memory_, bytes);
    CALL(cuMemsetD8, memory_, 1, bytes);
    CALL(cuCtxSynchronize);
  }
  // The context exists until the program ends, as hpe's contexts do.
  ~gpu_memory() {
    use();
    CALL(cuMemFree, memory_);
  }
  gpu_memory(const gpu_memory&) = delete;
  gpu_memory& operator=(const gpu_memory&) = delete;

  void use() const { CALL(cuCtxSetCurrent, context_); }
  [[nodiscard]] CUcontext context() const { return context_; }
  [[nodiscard]] CUdeviceptr data() const { return memory_; }

  /// Lets this GPU access the memory of another GPU, if the machine allows peer access.
  void reach(const gpu_memory& other) const {
    int can = 0;
    CALL(cuDeviceCanAccessPeer, &can, device_, other.device_);
    if (can == 0) return;
    use();
    static const auto enable =
        reinterpret_cast<decltype(&::cuCtxEnablePeerAccess)>(driver_entry(HPE_NAME_OF(cuCtxEnablePeerAccess)));
    const CUresult result = enable(other.context_, 0);
    if (result != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) check(result, "cuCtxEnablePeerAccess");
  }

 private:
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUdeviceptr memory_ = 0;
};

class on_gpu final : public by_hand {
 public:
  on_gpu(int device, std::size_t bytes) : memory_(device, bytes), pinned_(bytes) {}
  void to_host(void* host, std::size_t bytes) override {
    memory_.use();
    CALL(cuMemcpyDtoH, host, memory_.data(), bytes);
  }
  void to_device(const void* host, std::size_t bytes) override {
    memory_.use();
    CALL(cuMemcpyHtoD, memory_.data(), host, bytes);
  }
  std::byte* pinned() override { return pinned_.data(); }

 private:
  gpu_memory memory_;
  pinned_buffer pinned_;
};

class between_gpus final : public peer_copy {
 public:
  between_gpus(int from, int to, std::size_t bytes) : from_(from, bytes), to_(to, bytes) {
    to_.reach(from_);
    from_.reach(to_);
    CALL(cuStreamCreate, &stream_, CU_STREAM_NON_BLOCKING);
  }
  ~between_gpus() override {
    from_.use();
    CALL(cuStreamDestroy, stream_);
  }
  void run(std::size_t bytes) override {
    from_.use();
    CALL(cuMemcpyPeerAsync, to_.data(), to_.context(), from_.data(), from_.context(), bytes, stream_);
    CALL(cuStreamSynchronize, stream_);
  }

 private:
  gpu_memory from_;
  gpu_memory to_;
  CUstream stream_ = nullptr;
};

}  // namespace

std::unique_ptr<by_hand> gpu_by_hand(int device, std::size_t bytes) { return std::make_unique<on_gpu>(device, bytes); }
std::unique_ptr<peer_copy> gpu_peer_copy(int from, int to, std::size_t bytes) {
  return std::make_unique<between_gpus>(from, to, bytes);
}

}  // namespace hpe::bench
