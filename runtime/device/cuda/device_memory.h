#pragma once

/// The device memory of all GPUs of a set, mapped at addresses of the UVAS.
///
/// hpe keeps the memory of unmapped ranges of up to 64 MiB (768 MiB in all) for later ranges of the same size, because
/// hpe unmaps and maps many ranges while it evicts data, and copies run more slowly while the driver creates and
/// releases memory (H200: 48 GB/s instead of 55 GB/s). hpe also keeps zero-copy memory whose bytes have moved
/// to device memory, because pinning host memory takes longer than copying to it.

#include <cstddef>
#include <cstdint>
#include <map>
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

  /// Makes the driver reserve the segments that contain a range, unless it has reserved them already. This unmaps
  /// everything that the host has mapped in newly reserved segments, so call this before the host's views are mapped
  /// there, even if the range will not have device memory.
  void reserve(std::uintptr_t address, std::size_t bytes);

  /// Where memory is created: on a device, or on the host for this device (zero-copy memory).
  struct place {
    unsigned device = 0;
    CUdevice ordinal = 0;  // the driver's number of the device
    backing_kind where = backing_kind::device;
    int numa_node = 0;  // the node of zero-copy memory
  };
  /// A device that can access memory, and the driver's number of this device.
  struct user {
    unsigned device = 0;
    CUdevice ordinal = 0;
  };
  /// Creates memory and maps it at `address` for those of the `users` that have been admitted. Throws the same errors
  /// as device::map. The caller must hold an object of class entered with the device's context, and must clear or
  /// overwrite the memory, which may contain old bytes.
  void map(std::uintptr_t address, std::size_t bytes, const place& at, std::span<const user> users);
  /// To be called before a device is first used. Lets the device access the memory of each device d for which
  /// `reached[d]` is true. map() gives the device access to memory that is mapped later.
  void admit(unsigned device, CUdevice ordinal, const std::vector<bool>& reached);

  /// Returns an address at which the device of `at` can access memory that is to replace the memory of a mapped range;
  /// creates this memory unless hpe keeps some. The caller copies the bytes to it and then calls replace() or cancel().
  /// Throws the same errors as map(). The caller must hold an object of class entered with the device's context, also
  /// for replace() and cancel().
  struct replacement {
    std::uintptr_t address = 0;  // of the range
    std::size_t bytes = 0;
    place at;
    CUmemGenericAllocationHandle memory = 0;
    std::uintptr_t other_address = 0;
    bool was_on_standby = false;
  };
  [[nodiscard]] replacement prepare(std::uintptr_t address, std::size_t bytes, const place& at);
  /// Backs the range with the new memory for those of the `users` that have been admitted, and keeps the old memory for
  /// later ranges or moves. If the driver refuses, throws; the range is then unchanged.
  void replace(const replacement& by, std::span<const user> users);
  void cancel(const replacement& by) noexcept;
  /// Whether hpe keeps zero-copy memory for the next move of the range at an address.
  [[nodiscard]] bool has_standby(std::uintptr_t address) const;
  /// Frees the zero-copy memory that hpe keeps for the next moves of ranges.
  void drop_standby() noexcept;

  /// Unmaps one or several neighbouring ranges, each exactly as it was mapped on a device. Throws
  /// HPE_ERROR_INVALID_ARGUMENT for any other range. `released` returns the memory to the driver; `kept` may keep
  /// device memory for later ranges of the same sizes. Returns how many of the bytes were device memory.
  enum class after : std::uint8_t { released, kept };
  std::size_t unmap(std::uintptr_t address, std::size_t bytes, unsigned device, after what);

  /// Returns how many bytes of a device's memory are kept for later ranges. The driver does not count these bytes as
  /// free.
  [[nodiscard]] std::size_t kept(unsigned device) const;
  /// Returns the kept memory of a device to the driver.
  void drop_kept(unsigned device) noexcept {
    const lock_guard lock(mutex_);
    release_kept(device);
  }

  /// See device_set::share and device_set::import_memory. `users`: for each device, its number in the driver, or
  /// nullopt if the device must not use the memory. The caller must hold an object of class entered.
  std::vector<shared_part> share(std::uintptr_t address, std::size_t bytes);
  std::uint32_t import_memory(std::uintptr_t address, std::span<const shared_part> parts,
                              std::span<const std::optional<CUdevice>> users);

  /// The value of device_mapping::device for memory of another process.
  static constexpr unsigned foreign = 0xffffffff;

  struct device_mapping {
    unsigned device = 0;
    std::uintptr_t end = 0;  // the end of the driver's mapping; one command of the driver must not cross it
  };
  [[nodiscard]] std::optional<device_mapping> find(std::uintptr_t address) const;

 private:
  struct mapped_allocation {
    unsigned device = 0;
    CUmemGenericAllocationHandle memory = 0;
    backing_kind where = backing_kind::device;
    std::uintptr_t other_address = 0;  // where the memory is mapped too; 0: nowhere
    os::file_descriptor file{};        // opened by the first share() of this memory
  };

  struct kept_allocation {
    unsigned device;
    std::size_t bytes;
    CUmemGenericAllocationHandle memory;
    std::uintptr_t other_address;  // see mapped_allocation
  };

  void require_free(std::uintptr_t address, std::size_t bytes) const HPE_REQUIRES(mutex_);
  /// Returns kept memory, or new memory of the driver.
  [[nodiscard]] mapped_allocation create(std::size_t bytes, const place& at) HPE_REQUIRES(mutex_);
  [[nodiscard]] CUmemGenericAllocationHandle create_on_device(std::size_t bytes, const place& at) HPE_REQUIRES(mutex_);
  [[nodiscard]] CUmemGenericAllocationHandle create_zero_copy(std::size_t bytes, const place& at) HPE_REQUIRES(mutex_);
  /// Maps memory at an address of its own, for the device of `at`.
  void map_elsewhere(mapped_allocation& memory, std::size_t bytes, const place& at) HPE_REQUIRES(mutex_);
  /// The access of those of the users that have been admitted.
  [[nodiscard]] std::vector<CUmemAccessDesc> access_of(std::span<const user> users) const HPE_REQUIRES(mutex_);
  /// Keeps unmapped device memory for later ranges, or returns it to the driver.
  void keep(const mapped_allocation& memory, std::size_t bytes) noexcept HPE_REQUIRES(mutex_);
  /// Keeps the zero-copy memory of a range for the range's next move.
  void stand_by(std::uintptr_t address, std::size_t bytes, const mapped_allocation& memory) noexcept
      HPE_REQUIRES(mutex_);
  /// Frees the zero-copy memory that hpe keeps for ranges whose first address is in [begin, end).
  void drop_standby(std::uintptr_t begin, std::uintptr_t end) noexcept HPE_REQUIRES(mutex_);
  /// Returns the memory of kind backing_kind::common of a device.
  [[nodiscard]] CUmemGenericAllocationHandle common(const place& at) HPE_REQUIRES(mutex_);
  /// See drop_kept.
  void release_kept(unsigned device) noexcept HPE_REQUIRES(mutex_);
  void reserve_around(std::uintptr_t address, std::size_t bytes) HPE_REQUIRES(mutex_);
  [[nodiscard]] bool shareable(CUdevice home) const;
  /// Returns the memory of a range that is no longer mapped to the driver, unless other ranges use it too.
  void release(const mapped_allocation& memory, std::size_t bytes) const noexcept;
  /// Maps `memory` at `address` and takes ownership of it. If `memory` cannot be mapped, releases it and throws. If
  /// `access` is empty, no device can use the memory until cuMemSetAccess is called.
  void map_memory(std::uintptr_t address, std::size_t bytes, mapped_allocation memory,
                  std::span<const CUmemAccessDesc> access) HPE_REQUIRES(mutex_);
  void import_part(std::uintptr_t address, const shared_part& part) HPE_REQUIRES(mutex_);

  const driver& cu_;
  const uvas_layout layout_;
  mutable shared_mutex mutex_;
  std::vector<bool> reserved_ HPE_GUARDED_BY(mutex_);  // by segment
  std::vector<bool> admitted_ HPE_GUARDED_BY(mutex_);  // by device
  interval_map<std::uintptr_t, mapped_allocation> mappings_ HPE_GUARDED_BY(mutex_);
  std::vector<kept_allocation> kept_ HPE_GUARDED_BY(mutex_);
  std::map<std::uintptr_t, kept_allocation> standby_ HPE_GUARDED_BY(mutex_);        // zero-copy memory, by range
  std::map<unsigned, CUmemGenericAllocationHandle> common_ HPE_GUARDED_BY(mutex_);  // by device
};

}  // namespace hpe::device::cuda
