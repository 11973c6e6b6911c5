#pragma once

#include <cstddef>

namespace hpe::bench {

/// The driver's own copy between pageable memory and GPU 0, to memory of its own that holds `largest` bytes a lane. Two
/// files implement it: one where hpe is built for CUDA, and one that has none.
class pageable_copy {
 public:
  explicit pageable_copy(std::size_t largest);
  /// False where there is no driver.
  [[nodiscard]] bool exists() const { return exists_; }
  /// Returns when the bytes are there.
  void up(int lane, const std::byte* pageable, std::size_t bytes);
  void down(int lane, std::byte* pageable, std::size_t bytes);

 private:
  std::size_t largest_;
  unsigned long long memory_ = 0;
  void* context_ = nullptr;
  bool exists_ = false;
};

}  // namespace hpe::bench
