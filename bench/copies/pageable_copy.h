#pragma once

#include <cstddef>

namespace hpe::bench {

/// The driver's copy between pageable memory and GPU 0, which holds `largest` bytes for each lane. pageable_copy.cpp is
/// for builds with CUDA, pageable_copy_absent.cpp for builds without.
class pageable_copy {
 public:
  explicit pageable_copy(std::size_t largest);
  /// False if there is no driver.
  [[nodiscard]] bool exists() const { return exists_; }
  /// Returns when the data has arrived.
  void up(int lane, const std::byte* pageable, std::size_t bytes);
  void down(int lane, std::byte* pageable, std::size_t bytes);

 private:
  std::size_t largest_;
  unsigned long long memory_ = 0;
  void* context_ = nullptr;
  bool exists_ = false;
};

}  // namespace hpe::bench
