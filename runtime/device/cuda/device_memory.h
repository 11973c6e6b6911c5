#pragma once

/// The device memory of all GPUs of a set, mapped at addresses of the UVAS.
///
/// If hpe moves pieces of data into and out of device memory, it keeps the memory of an unmapped piece for the next
/// piece of the same size, because copies run more slowly while the driver creates and releases memory (H200: 48 GB/s
/// instead of 55 GB/s).

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
  /// All memory must have been unmapped, or its device must be lost.
  ~device_memory();
  device_memory(const device_memory&) = delete;
  device_memory& operator=(const device_memory&) = delete;

  /// Makes the driver reserve the segments around a range. The driver then unmaps everything that the host has mapped
  /// in these segments. So call this before the host's views are mapped there, even if there is no memory for the
  /// range.
  void reserve(std::uintptr_t address, std::size_t bytes);

  /// Creates memory on a device and maps it for all `users`, which are ordinals of the driver. Throws what device::map
  /// throws. The caller must have entered the device's context, and must clear the memory.
  void map(std::uintptr_t address, std::size_t bytes, unsigned device, CUdevice home, std::span<const CUdevice> users);

  /// Unmaps one or several whole ranges that were mapped for a device. Throws HPE_ERROR_INVALID_ARGUMENT for other
  /// ranges. `released` returns the memory to the driver; `kept` may keep some memory for the next ranges of the same
  /// sizes.
  enum class after : std::uint8_t { released, kept };
  void unmap(std::uintptr_t address, std::size_t bytes, unsigned device, after what);

  /// How many bytes of a device's memory are kept for later ranges. The driver does not count them as free.
  [[nodiscard]] std::size_t kept(unsigned device) const;

  /// See device_set::share and device_set::import_memory. `users`: the devices to try, by index. The caller must have
  /// entered a context.
  std::vector<shared_part> share(std::uintptr_t address, std::size_t bytes);
  std::uint32_t import_memory(std::uintptr_t address, std::span<const shared_part> parts,
                              std::span<const std::optional<CUdevice>> users);

  /// Used in place of a device number for memory of another process.
  static constexpr unsigned foreign = 0xffffffff;

  struct piece {
    unsigned device = 0;
    std::uintptr_t end = 0;  // end of the piece, which copies must not cross
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
  /// Returns kept memory, or new memory of the driver.
  [[nodiscard]] CUmemGenericAllocationHandle create(std::size_t bytes, unsigned device, CUdevice home)
      HPE_REQUIRES(mutex_);
  /// Returns the kept memory of a device to the driver.
  void release_kept(unsigned device) HPE_REQUIRES(mutex_);
  void reserve_around(std::uintptr_t address, std::size_t bytes) HPE_REQUIRES(mutex_);
  [[nodiscard]] bool shareable(CUdevice home) const;
  /// Takes ownership of the memory, and releases it if it cannot be mapped. If `access` is empty, no device can use it
  /// yet.
  void map_memory(std::uintptr_t address, std::size_t bytes, unsigned device, CUmemGenericAllocationHandle memory,
                  std::span<const CUmemAccessDesc> access) HPE_REQUIRES(mutex_);
  void import_part(std::uintptr_t address, const shared_part& part) HPE_REQUIRES(mutex_);

  const driver& cu_;
  const uvas_layout layout_;
  mutable shared_mutex mutex_;
  std::vector<bool> reserved_ HPE_GUARDED_BY(mutex_);  // by segment
  interval_map<std::uintptr_t, mapping> mappings_ HPE_GUARDED_BY(mutex_);
  std::vector<kept_piece> kept_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::device::cuda
