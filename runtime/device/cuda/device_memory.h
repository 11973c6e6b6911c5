#pragma once

/// The device memory of all GPUs of a set, mapped at addresses of the UVAS.
///
/// Where data takes turns in device memory, the memory of a piece that was unmapped is kept for the next piece of the
/// same size, because copies run more slowly while the driver creates and releases memory (H200: 48 GB/s instead of
/// 55).

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/interval_map.h"
#include "runtime/base/thread_safety.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/device/device.h"
#include "runtime/os/file_descriptor.h"

namespace hpe::device::cuda {

/// Thread-safe.
class device_memory {
 public:
  device_memory(const driver& cu, const uvas_layout& layout);
  /// All memory must be unmapped, or its device lost.
  ~device_memory();
  device_memory(const device_memory&) = delete;
  device_memory& operator=(const device_memory&) = delete;

  /// Reserves the segments around a range with the driver, which unmaps everything that the host has mapped there. So
  /// this must come before views of the host are mapped in these segments, even if there is no memory for the range.
  void reserve(std::uintptr_t address, std::size_t bytes);

  /// Creates memory on a device and maps it for all `users`, which are ordinals of the driver. Throws what device::map
  /// throws. The caller has entered the device's context, and must clear the memory.
  void map(std::uintptr_t address, std::size_t bytes, unsigned device, CUdevice home, std::span<const CUdevice> users);

  /// Unmaps one or several whole ranges that were mapped for a device. Throws HPE_ERROR_INVALID_ARGUMENT for others.
  /// released: the driver gets the memory back; kept: some of it may wait for the next ranges of the same sizes.
  enum class after : std::uint8_t { released, kept };
  void unmap(std::uintptr_t address, std::size_t bytes, unsigned device, after what);

  /// The bytes of a device's memory that wait for ranges, which the driver does not count as free.
  [[nodiscard]] std::size_t kept(unsigned device) const;

  /// See device_set::share and device_set::import_memory. users: the devices to try, by index. The caller has entered a
  /// context.
  std::vector<shared_part> share(std::uintptr_t address, std::size_t bytes);
  std::uint32_t import_memory(std::uintptr_t address, std::span<const shared_part> parts,
                              std::span<const std::optional<CUdevice>> users);

  /// In place of a device number: memory of another process.
  static constexpr unsigned foreign = 0xffffffff;

  struct piece {
    unsigned device = 0;
    std::uintptr_t end = 0;  // copies must not cross it
  };
  [[nodiscard]] std::optional<piece> find(std::uintptr_t address) const;

 private:
  struct mapping {
    unsigned device;
    CUmemGenericAllocationHandle memory;
    os::file_descriptor file{};  // set when the memory is first shared
  };

  struct kept_piece {
    unsigned device;
    std::size_t bytes;
    CUmemGenericAllocationHandle memory;
  };

  void require_free(std::uintptr_t address, std::size_t bytes) const HPE_REQUIRES(mutex_);
  /// Kept memory, or new memory of the driver.
  [[nodiscard]] CUmemGenericAllocationHandle create(std::size_t bytes, unsigned device, CUdevice home)
      HPE_REQUIRES(mutex_);
  /// Gives kept memory of a device back to the driver.
  void release_kept(unsigned device) HPE_REQUIRES(mutex_);
  void reserve_around(std::uintptr_t address, std::size_t bytes) HPE_REQUIRES(mutex_);
  [[nodiscard]] bool shareable(CUdevice home) const;
  void import_part(std::uintptr_t address, const shared_part& part) HPE_REQUIRES(mutex_);

  const driver& cu_;
  const uvas_layout layout_;
  mutable shared_mutex mutex_;
  std::vector<bool> reserved_ HPE_GUARDED_BY(mutex_);  // by segment
  interval_map<std::uintptr_t, mapping> mappings_ HPE_GUARDED_BY(mutex_);
  std::vector<kept_piece> kept_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::device::cuda
