#pragma once

#include <driver_types.h>

#include <exception>
#include <string>
#include <utility>

namespace hpe::cudart {

/// An error of CUDA that an exported function returns to the program.
class failure : public std::exception {
 public:
  /// `reason` is a sentence for the log; if it is empty, the log contains CUDA's sentence for the code.
  explicit failure(cudaError_t code, std::string reason = {}) : code_(code), reason_(std::move(reason)) {}
  [[nodiscard]] cudaError_t code() const noexcept { return code_; }
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }
  [[nodiscard]] const char* what() const noexcept override {
    return reason_.empty() ? "a call of the CUDA runtime failed" : reason_.c_str();
  }

 private:
  cudaError_t code_;
  std::string reason_;
};

/// Throws failure(code) if the condition does not hold.
inline void require(bool condition, cudaError_t code) {
  if (!condition) throw failure(code);
}

/// Throws failure(code) unless code is cudaSuccess.
inline void check(cudaError_t code) { require(code == cudaSuccess, code); }

}  // namespace hpe::cudart
