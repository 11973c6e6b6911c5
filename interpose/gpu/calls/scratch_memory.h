#pragma once

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "interpose/gpu/work/context_parts.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cuda_hooks {

/// Device memory that hpe allocates in one context of the program, for the data of messages between processes. When CPU
/// code touches the program's memory, hpe fetches or uploads whole blocks of adopted regions. Unused bytes around each
/// allocation therefore keep this memory out of all blocks of adopted regions. Thread safe.
class scratch_memory : public std::enable_shared_from_this<scratch_memory> {
 public:
  /// The type of a function that scratch_memory calls before it frees memory.
  using goes = std::function<void(CUdeviceptr address, std::size_t bytes)>;

  scratch_memory(const device::cuda::driver& cu, std::shared_ptr<context_parts> parts, goes told)
      : cu_(cu), parts_(std::move(parts)), told_(std::move(told)) {}
  ~scratch_memory();
  scratch_memory(const scratch_memory&) = delete;
  scratch_memory& operator=(const scratch_memory&) = delete;

  /// The largest number of bytes for which callers may call borrow(), and the limit for the bytes of unused memory in
  /// blocks of at least `slab` bytes.
  static constexpr std::size_t most = std::size_t{256} << 20;

  /// Lends at least `bytes` bytes, aligned to 256. Before the last owner releases the bytes, all work that uses them
  /// must be done. Throws hpe::error if the driver refuses.
  [[nodiscard]] std::shared_ptr<std::byte> borrow(std::size_t bytes);
  /// Returns how many bytes borrow(bytes) takes.
  [[nodiscard]] static std::size_t lent_for(std::size_t bytes) noexcept {
    return std::bit_ceil(std::max(bytes, smallest));
  }

 private:
  static constexpr std::size_t smallest = std::size_t{64} << 10;
  static constexpr std::size_t slab = std::size_t{2} << 20;
  /// The number of unused bytes before and after each allocation of the driver; more than a page, because adopted
  /// regions consist of whole pages.
  static constexpr std::size_t guard = std::size_t{64} << 10;

  [[nodiscard]] CUdeviceptr allocate(std::size_t size);
  void release(CUdeviceptr memory, std::size_t size) noexcept;
  void give_back(CUdeviceptr memory, std::size_t size) noexcept;

  const device::cuda::driver& cu_;
  const std::shared_ptr<context_parts> parts_;
  const goes told_;
  mutex mutex_;
  std::map<std::size_t, std::vector<CUdeviceptr>> free_
      HPE_GUARDED_BY(mutex_);  // unused memory; the key is its size. Small blocks are parts of slabs
  std::vector<CUdeviceptr> slabs_ HPE_GUARDED_BY(mutex_);
  std::size_t kept_ HPE_GUARDED_BY(mutex_) = 0;
};

}  // namespace hpe::cuda_hooks
