#pragma once

/// The device memory of all GPUs of a set, mapped at addresses of the UVAS.
///
/// hpe keeps the memory of unmapped ranges of up to 64 MiB (768 MiB in all) for later ranges of the same size, because
/// hpe unmaps and maps many ranges while it evicts data, and copies run more slowly while the driver creates and
/// releases memory (H200: 48 GB/s instead of 55 GB/s). Kept memory counts as memory that hpe uses: before hpe creates
/// memory, it releases kept memory for which the device's limit leaves no room. hpe also keeps zero-copy memory whose
/// bytes have moved to device memory, because pinning host memory takes longer than copying to it.
///
/// The driver changes neighbouring mappings together: one call of cuMemUnmap removes them, and one call of
/// cuMemSetAccess lets devices access them.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hpe/error.hpp"
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
    // Device memory: how many bytes the device may keep for later ranges after the creation of this memory.
    std::size_t most_kept = ~std::size_t{0};
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
  /// for replace() and cancel(). Says in `was_on_standby` whether the memory is that of has_standby().
  struct replacement {
    std::uintptr_t address = 0;  // of the range
    std::size_t bytes = 0;
    place at;
    CUmemGenericAllocationHandle memory = 0;
    std::uintptr_t other_address = 0;
    bool was_on_standby = false;
  };
  [[nodiscard]] replacement prepare(std::uintptr_t address, std::size_t bytes, const place& at);
  /// What happens with device memory that a range no longer uses: `released` returns it to the driver; `kept` may keep
  /// it for later ranges of the same size.
  enum class after : std::uint8_t { released, kept };
  /// Backs different ranges with new memory for those of the `users` that have been admitted, and keeps the zero-copy
  /// memory that they had for their next moves. Neighbouring ranges that get memory of the same kind change together.
  /// Returns, for each range, why the driver has refused the change: the range is then unchanged, and its new memory is
  /// released.
  [[nodiscard]] std::vector<std::optional<error>> replace(std::span<const replacement> all, std::span<const user> users,
                                                          after what);
  void cancel(const replacement& by) noexcept;
  /// Whether hpe keeps zero-copy memory for the next move of the range at an address.
  [[nodiscard]] bool has_standby(std::uintptr_t address) const;
  /// Frees the zero-copy memory that hpe keeps for the next moves of ranges.
  void drop_standby() noexcept;

  /// Unmaps one or several neighbouring ranges, each exactly as it was mapped on a device. Throws
  /// HPE_ERROR_INVALID_ARGUMENT for any other range. Returns how many of the bytes were device memory.
  std::size_t unmap(std::uintptr_t address, std::size_t bytes, unsigned device, after what);

  /// Returns how many bytes of a device's memory are kept for later ranges. The driver does not count these bytes as
  /// free.
  [[nodiscard]] std::size_t kept(unsigned device) const;
  /// Returns kept memory of a device to the driver, the oldest first, until at most `most` bytes are kept.
  void drop_kept(unsigned device, std::size_t most = 0) noexcept {
    const lock_guard lock(mutex_);
    release_kept(device, most);
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
  /// If the limit of locked memory may be why the driver refuses `more` bytes of zero-copy memory, returns words for
  /// this limit, for messages.
  [[nodiscard]] std::string limit_of_locked(std::size_t more) const HPE_REQUIRES(mutex_);
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
  void release_kept(unsigned device, std::size_t most = 0) noexcept HPE_REQUIRES(mutex_);
  /// A range whose memory replace() changes.
  struct changed_range {
    const replacement* by;
    mapped_allocation* mapped;
    std::size_t number;  // in the list of all ranges
  };
  [[nodiscard]] static std::pair<std::uintptr_t, std::size_t> range_of_change(const changed_range& r) noexcept;
  /// Changes the memory of neighbouring ranges. Returns the driver's error; the ranges are then unchanged.
  [[nodiscard]] CUresult replace_run(std::span<const changed_range> run, std::span<const CUmemAccessDesc> access,
                                     after what) noexcept HPE_REQUIRES(mutex_);
  /// Maps, at the addresses of neighbouring ranges, the new memory or, if `is_new` is false, the memory that mappings_
  /// names. If the driver refuses, nothing is mapped there.
  [[nodiscard]] CUresult map_run(std::span<const changed_range> run, std::span<const CUmemAccessDesc> access,
                                 bool is_new) const noexcept;
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
