#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "interpose/cuda/context_parts.h"

namespace hpe::cuda_hooks {

/// Device memory of hpe's own in one context of the program, which messages pass through. It shares no block with
/// memory of the program, whose blocks go to CPU code and come back as a whole (adopted_region). Any thread.
class own_memory : public std::enable_shared_from_this<own_memory> {
 public:
  /// Is told of memory before the driver gets it back.
  using goes = std::function<void(CUdeviceptr address, std::size_t bytes)>;

  own_memory(const device::cuda::driver& cu, std::shared_ptr<context_parts> parts, goes told)
      : cu_(cu), parts_(std::move(parts)), told_(std::move(told)) {}
  ~own_memory();
  own_memory(const own_memory&) = delete;
  own_memory& operator=(const own_memory&) = delete;

  /// At least so many bytes, aligned to 256. Whoever lets go of them has no work queued that uses them. Throws what the
  /// driver refuses.
  [[nodiscard]] std::shared_ptr<std::byte> borrow(std::size_t bytes);

 private:
  static constexpr std::size_t smallest = std::size_t{64} << 10;
  static constexpr std::size_t slab = std::size_t{2} << 20;
  static constexpr std::size_t guard = std::size_t{64} << 10;       ///< unused, on either side: a block of a region
  static constexpr std::size_t most_kept = std::size_t{256} << 20;  ///< bytes, of larger ones

  [[nodiscard]] CUdeviceptr allocate(std::size_t size);
  void release(CUdeviceptr memory, std::size_t size) noexcept;
  void give_back(CUdeviceptr memory, std::size_t size) noexcept;

  const device::cuda::driver& cu_;
  const std::shared_ptr<context_parts> parts_;
  const goes told_;
  std::mutex mutex_;
  std::map<std::size_t, std::vector<CUdeviceptr>> free_;  // by size; small ones are parts of slabs
  std::vector<CUdeviceptr> slabs_;
  std::size_t kept_ = 0;
};

}  // namespace hpe::cuda_hooks
