#pragma once

/// Error checks and device arrays for the CUDA versions of the programs.

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "bench/pairs/pairs.h"

namespace hpe::bench::pairs::cuda {

inline void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
  std::exit(EXIT_FAILURE);
}

inline void finish() {
  check(cudaGetLastError());
  check(cudaDeviceSynchronize());
}

// An array in device memory.
template <class T>
class array {
 public:
  explicit array(std::size_t count) : count_(count) { check(cudaMalloc(&data_, count * sizeof(T))); }
  explicit array(const std::vector<T>& values) : array(values.size()) { fill(values); }
  array(const array&) = delete;
  ~array() { cudaFree(data_); }

  void fill(const std::vector<T>& values) {
    check(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  void copy(const array& from) {
    check(cudaMemcpyAsync(data_, from.data_, count_ * sizeof(T), cudaMemcpyDeviceToDevice));
  }
  void clear() { check(cudaMemsetAsync(data_, 0, count_ * sizeof(T))); }
  T* get() const { return data_; }
  std::vector<double> values() const {
    std::vector<T> here(count_);
    check(cudaMemcpy(here.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return {here.begin(), here.end()};
  }

 private:
  std::size_t count_;
  T* data_ = nullptr;
};

template <class T, class... From>
std::shared_ptr<array<T>> make(From&&... from) {
  return std::make_shared<array<T>>(std::forward<From>(from)...);
}

inline int parts(int n, int size) { return (n + size - 1) / size; }

}  // namespace hpe::bench::pairs::cuda
