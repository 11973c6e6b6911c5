#pragma once

/// Uses a GPU as a program without hpe does: copies by the driver, managed memory, and the kernels of the tests.

#include <cstddef>
#include <cstdint>

#include "bench/common/driver_calls.h"

namespace hpe::bench {

inline constexpr std::size_t mebi = std::size_t{1} << 20;
inline constexpr std::size_t stream_bytes = 1024 * mebi;
inline constexpr std::size_t page = 4096;

[[nodiscard]] std::uint32_t fresh_seed();
[[nodiscard]] inline CUdeviceptr as_device(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

/// A GPU with a stream and an allocation of stream_bytes bytes.
class raw_gpu {
 public:
  explicit raw_gpu(int number);

  /// Makes the GPU's context current on the calling thread.
  void use() const;
  void finish() const;
  void up(CUdeviceptr to, const void* from, std::size_t bytes) const;
  void down(void* to, CUdeviceptr from, std::size_t bytes) const;
  /// Queue a kernel that writes every element of the array, or a kernel that does nothing.
  void fill(void* data, std::size_t bytes) const;
  void nothing() const;

  /// Copies pageable memory as programs do by hand, through two pinned buffers: the thread fills or empties one while
  /// the link copies the other. Returns when the copy is done.
  void up_by_hand(CUdeviceptr to, const std::byte* from, std::size_t bytes, const pinned_buffer& two_buffers) const;
  void down_by_hand(std::byte* to, CUdeviceptr from, std::size_t bytes, const pinned_buffer& two_buffers) const;
  static constexpr std::size_t by_hand_buffer = 4 * mebi;

  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
  CUdevice device = 0;

 private:
  CUcontext context_ = nullptr;
  CUfunction fill_ = nullptr;
  CUfunction nothing_ = nullptr;
  CUevent copied_[2] = {};
};

}  // namespace hpe::bench
