#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <thread>
#include <vector>

#include "ordered_kernels.h"
#include "tests/interpose/soft/cudart/api/check.h"

/// A host function that waits until open() is called.
class host_gate {
 public:
  ~host_gate() { open(); }
  void open() { open_ = true; }
  cudaError_t put(cudaStream_t stream) { return cudaLaunchHostFunc(stream, wait, &open_); }

 private:
  static void wait(void* data) {
    while (!*static_cast<std::atomic<bool>*>(data)) std::this_thread::yield();
  }
  std::atomic<bool> open_{false};
};

class own_stream {
 public:
  explicit own_stream(unsigned flags = cudaStreamDefault) { EXPECT_CUDA(cudaStreamCreateWithFlags(&handle_, flags)); }
  ~own_stream() { cudaStreamDestroy(handle_); }
  own_stream(const own_stream&) = delete;
  own_stream& operator=(const own_stream&) = delete;
  operator cudaStream_t() const { return handle_; }  // NOLINT(google-explicit-constructor): stands for its handle

 private:
  cudaStream_t handle_ = nullptr;
};

template <class T>
std::vector<T> from_device(const T* data, std::size_t count) {
  std::vector<T> result(count);
  EXPECT_CUDA(cudaMemcpy(result.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost));
  return result;
}

template <class T>
void to_device(T* data, const std::vector<T>& values) {
  EXPECT_CUDA(cudaMemcpy(data, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
}
