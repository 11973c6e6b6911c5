#pragma once

#include <cstddef>

namespace hpe::bench {

/// Copies between pageable memory and GPU 0 by the CUDA driver itself. Each of two lanes has `largest` bytes on the
/// GPU, so that two threads can copy in opposite directions. pageable_copy.cpp is for builds with CUDA,
/// pageable_copy_absent.cpp for builds without.
class pageable_copy {
 public:
  explicit pageable_copy(std::size_t largest);
  /// False if there is no driver.
  [[nodiscard]] bool exists() const { return exists_; }
  /// Copy to the GPU and from the GPU; return when the data has arrived.
  void up(int lane, const std::byte* pageable, std::size_t bytes);
  void down(int lane, std::byte* pageable, std::size_t bytes);

 private:
  std::size_t largest_;
  unsigned long long memory_ = 0;
  void* context_ = nullptr;
  bool exists_ = false;
};

}  // namespace hpe::bench
