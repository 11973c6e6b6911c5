#pragma once

/// Memory of a device, and its copies, as a program has them that knows nothing of hpe. On a GPU they are the driver's.
/// A soft device has no programs without hpe; there they are hpeMalloc and hpeMemcpy.

#include <cstddef>
#include <memory>

namespace hpe::bench {

class by_hand {
 public:
  by_hand() = default;
  virtual ~by_hand() = default;
  by_hand(const by_hand&) = delete;
  by_hand& operator=(const by_hand&) = delete;

  /// Between the start of the device memory and pinned or pageable host memory. They return when the copy is done.
  virtual void to_host(void* host, std::size_t bytes) = 0;
  virtual void to_device(const void* host, std::size_t bytes) = 0;
  /// As much pinned host memory as there is of the device's, touched.
  [[nodiscard]] virtual std::byte* pinned() = 0;
};

/// `bytes` of memory of a device; numbers are hpe's, which are those of the driver.
[[nodiscard]] std::unique_ptr<by_hand> make_by_hand(int device, std::size_t bytes);

/// Memory of two GPUs.
class peer_copy {
 public:
  peer_copy() = default;
  virtual ~peer_copy() = default;
  peer_copy(const peer_copy&) = delete;
  peer_copy& operator=(const peer_copy&) = delete;

  /// From one to the other, by the driver; returns when the copy is done.
  virtual void run(std::size_t bytes) = 0;
};

// gpu.cpp, or gpu_absent.cpp where hpe is built without CUDA, which has nothing.
[[nodiscard]] std::unique_ptr<by_hand> gpu_by_hand(int device, std::size_t bytes);
[[nodiscard]] std::unique_ptr<peer_copy> gpu_peer_copy(int from, int to, std::size_t bytes);

}  // namespace hpe::bench
