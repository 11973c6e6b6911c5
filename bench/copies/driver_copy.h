#pragma once

#include <cstddef>

namespace hpe::bench {

/// Copies between pageable memory and GPU 0, by the CUDA driver. Has two buffers of `largest` bytes on the GPU, which
/// the parameter `lane` selects, so that two threads can copy in opposite directions. Builds with CUDA compile
/// driver_copy.cpp, other builds driver_copy_absent.cpp.
class pageable_copy {
 public:
  explicit pageable_copy(std::size_t largest);
  /// False if there is no CUDA driver; the functions below must then not be called.
  [[nodiscard]] bool exists() const { return exists_; }
  /// Copy to the GPU (up) and from the GPU (down); return when the copy is done.
  void up(int lane, const std::byte* pageable, std::size_t bytes);
  void down(int lane, std::byte* pageable, std::size_t bytes);

 private:
  std::size_t largest_;
  unsigned long long memory_ = 0;
  void* context_ = nullptr;
  bool exists_ = false;
};

}  // namespace hpe::bench
