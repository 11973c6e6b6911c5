#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "interpose/cuda/work/context_parts.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cuda_hooks {

/// Device memory of hpe in one context of the program, for bytes of messages on their way. It shares no block with
/// memory of the program, because CPU code takes and returns blocks as a whole (adopted_region). Thread safe.
class scratch_memory : public std::enable_shared_from_this<scratch_memory> {
 public:
  /// Called before memory returns to the driver.
  using goes = std::function<void(CUdeviceptr address, std::size_t bytes)>;

  scratch_memory(const device::cuda::driver& cu, std::shared_ptr<context_parts> parts, goes told)
      : cu_(cu), parts_(std::move(parts)), told_(std::move(told)) {}
  ~scratch_memory();
  scratch_memory(const scratch_memory&) = delete;
  scratch_memory& operator=(const scratch_memory&) = delete;

  static constexpr std::size_t most = std::size_t{256} << 20;  ///< bytes of one loan, and bytes kept of large loans

  /// Lends at least `bytes` bytes, aligned to 256. The last owner must not leave work queued that uses them. Throws
  /// hpe::error if the driver refuses.
  [[nodiscard]] std::shared_ptr<std::byte> borrow(std::size_t bytes);

 private:
  static constexpr std::size_t smallest = std::size_t{64} << 10;
  static constexpr std::size_t slab = std::size_t{2} << 20;
  static constexpr std::size_t guard = std::size_t{64} << 10;  ///< unused bytes on either side: a block of a region

  [[nodiscard]] CUdeviceptr allocate(std::size_t size);
  void release(CUdeviceptr memory, std::size_t size) noexcept;
  void give_back(CUdeviceptr memory, std::size_t size) noexcept;

  const device::cuda::driver& cu_;
  const std::shared_ptr<context_parts> parts_;
  const goes told_;
  mutex mutex_;
  std::map<std::size_t, std::vector<CUdeviceptr>> free_
      HPE_GUARDED_BY(mutex_);  // by size; small loans are parts of slabs
  std::vector<CUdeviceptr> slabs_ HPE_GUARDED_BY(mutex_);
  std::size_t kept_ HPE_GUARDED_BY(mutex_) = 0;
};

}  // namespace hpe::cuda_hooks
