#pragma once

#include <driver_types.h>

#include <exception>

namespace hpe::cudart {

/// An error of CUDA that an exported function returns to the program.
class failure : public std::exception {
 public:
  explicit failure(cudaError_t code) : code_(code) {}
  [[nodiscard]] cudaError_t code() const noexcept { return code_; }
  [[nodiscard]] const char* what() const noexcept override { return "a call of the CUDA runtime failed"; }

 private:
  cudaError_t code_;
};

/// Throws failure(code) unless the condition holds.
inline void require(bool condition, cudaError_t code) {
  if (!condition) throw failure(code);
}

/// Throws failure(code) unless code is cudaSuccess.
inline void check(cudaError_t code) { require(code == cudaSuccess, code); }

}  // namespace hpe::cudart
