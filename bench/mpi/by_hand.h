#pragma once

/// Device memory and copies as in a program without hpe. On a GPU, the functions call the CUDA driver. On a soft
/// device, which only hpe can use, the functions call hpeMalloc and hpeMemcpy.

#include <cstddef>
#include <memory>

namespace hpe::bench {

class by_hand {
 public:
  by_hand() = default;
  virtual ~by_hand() = default;
  by_hand(const by_hand&) = delete;
  by_hand& operator=(const by_hand&) = delete;

  /// Copy between the start of the device memory and pinned or pageable host memory; return when the copy is done.
  virtual void to_host(void* host, std::size_t bytes) = 0;
  virtual void to_device(const void* host, std::size_t bytes) = 0;
  /// Returns pinned host memory as large as the device memory; all its pages have been written once.
  [[nodiscard]] virtual std::byte* pinned() = 0;
};

/// Allocates `bytes` bytes on a device. The device numbers of hpe and of the driver are the same.
[[nodiscard]] std::unique_ptr<by_hand> make_by_hand(int device, std::size_t bytes);

/// A copy between memory of two GPUs.
class peer_copy {
 public:
  peer_copy() = default;
  virtual ~peer_copy() = default;
  peer_copy(const peer_copy&) = delete;
  peer_copy& operator=(const peer_copy&) = delete;

  /// Copies `bytes` bytes from one GPU to the other by the CUDA driver; returns when the copy is done.
  virtual void run(std::size_t bytes) = 0;
};

// gpu.cpp defines these functions; in builds without CUDA, gpu_absent.cpp defines them to return null.
[[nodiscard]] std::unique_ptr<by_hand> gpu_by_hand(int device, std::size_t bytes);
[[nodiscard]] std::unique_ptr<peer_copy> gpu_peer_copy(int from, int to, std::size_t bytes);

}  // namespace hpe::bench
