#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/base/box.h"
#include "runtime/base/function_ref.h"
#include "runtime/device/cuda/driver.h"

namespace hpe::core {
class runtime;
}  // namespace hpe::core

namespace hpe::cuda_hooks {

class oversubscribed;

/// The copies and fills with which a CUDA program uses hpe memory. With --oversubscribe, such a copy may be larger than
/// device memory, so hpe divides it into parts. Thread-safe.
class object_copies {
 public:
  /// The arguments must outlive the object.
  object_copies(const device::cuda::driver& cu, core::runtime& hpe, oversubscribed& all)
      : cu_(cu), hpe_(hpe), all_(all) {}

  /// Copies contiguous bytes; queue(offset, bytes) queues a part of the copy. Returns nullopt if `bytes` is 0 or
  /// neither address is in hpe memory, and CUDA_ERROR_INVALID_VALUE if the bytes extend beyond an hpe allocation. If
  /// `waits` is true, returns only when the bytes have been copied.
  std::optional<CUresult> copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream, bool waits,
                               function_ref<CUresult(std::size_t, std::size_t)> queue);
  /// Runs work that overwrites a range of any size; queue(offset, bytes) queues the work for a part of the range.
  /// Returns nullopt if the range is not in hpe memory. The size of each part is a multiple of `unit`, in bytes.
  std::optional<CUresult> overwrite(CUdeviceptr to, std::size_t bytes, std::size_t unit, CUstream stream,
                                    function_ref<CUresult(std::size_t, std::size_t)> queue);
  /// Copies or fills a box of any size; queue(part) queues the copy or fill of a part of the box. The address of an
  /// array of the driver is 0. Returns nullopt if neither address is in hpe memory.
  std::optional<CUresult> use_box(CUdeviceptr to, CUdeviceptr from, const box_copy& whole, CUstream stream,
                                  function_ref<CUresult(const box_part&)> queue);

 private:
  /// Returns the largest size, in bytes, of the parts into which hpe divides copies and fills, a multiple of 512. With
  /// --oversubscribe, the size is small compared to the device's memory; otherwise, it has no limit.
  [[nodiscard]] std::size_t bytes_of_part(unsigned device) const;
  /// Divides a range into parts of at most bytes_of_part() bytes and calls part(offset, bytes) for each of them, until
  /// a call fails. Returns the result of the last call; if it throws, the result of refused().
  CUresult in_parts(unsigned device, std::size_t bytes, std::size_t unit,
                    function_ref<CUresult(std::size_t, std::size_t)> part);
  enum class memory_type : std::uint8_t { device, pinned, pageable };
  /// Finds the type of the memory at an address outside hpe memory.
  CUresult find_type(CUdeviceptr address, memory_type& found) const;

  const device::cuda::driver& cu_;
  core::runtime& hpe_;
  oversubscribed& all_;
};

}  // namespace hpe::cuda_hooks
