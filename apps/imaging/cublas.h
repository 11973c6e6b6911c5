#pragma once

/// cuBLAS, loaded when it is first needed: programs can be built and started without it.

#include "hpe/hpe.hpp"

namespace hpe::imaging {

/// A handle of cuBLAS for one device. Only one thread at a time may use a handle.
class cublas_handle {
 public:
  /// Whether cuBLAS can be loaded.
  [[nodiscard]] static bool installed();

  /// Throws hpe::error (HPE_ERROR_NOT_SUPPORTED) with the loader's message if cuBLAS cannot be loaded.
  explicit cublas_handle(int device);
  cublas_handle(const cublas_handle&) = delete;
  cublas_handle& operator=(const cublas_handle&) = delete;
  ~cublas_handle();

  /// Queues c = a b (if `replace` is set) or c += a b for n x n matrices, stored row by row.
  void multiply(const hpe::array<float>& a, const hpe::array<float>& b, const hpe::array<float>& c, int n,
                bool replace);

 private:
  int device_;
  void* handle_ = nullptr;
};

}  // namespace hpe::imaging
