#pragma once

/// The device memory of all GPUs of a set, mapped at addresses of the UVAS.

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

/// Any thread.
class device_memory {
 public:
  device_memory(const driver& cu, const uvas_layout& layout);
  /// Nothing is mapped any more, or its device is gone.
  ~device_memory();
  device_memory(const device_memory&) = delete;
  device_memory& operator=(const device_memory&) = delete;

  /// Creates memory on a device and maps it for all in `users`, ordinals of the driver. Throws what device::map throws.
  /// The caller has entered the device's context, and clears the memory.
  void map(std::uintptr_t address, std::size_t bytes, unsigned device, CUdevice home, std::span<const CUdevice> users);

  /// Takes away one or several whole ranges that were mapped for a device. Throws HPE_ERROR_INVALID_ARGUMENT.
  void unmap(std::uintptr_t address, std::size_t bytes, unsigned device);

  /// What stands behind a range, as device_set::share and import_memory have it. users: by index, those that are tried.
  /// The caller has entered a context.
  std::vector<shared_part> share(std::uintptr_t address, std::size_t bytes);
  std::uint32_t import_memory(std::uintptr_t address, std::span<const shared_part> parts,
                              std::span<const std::optional<CUdevice>> users);

  /// In place of a device: memory of another process.
  static constexpr unsigned foreign = 0xffffffff;

  struct piece {
    unsigned device = 0;
    std::uintptr_t end = 0;  // copies do not cross it
  };
  [[nodiscard]] std::optional<piece> find(std::uintptr_t address) const;

 private:
  struct mapping {
    unsigned device;
    CUmemGenericAllocationHandle memory;
    os::file_descriptor file{};  // once it was shared
  };

  void require_free(std::uintptr_t address, std::size_t bytes) const HPE_REQUIRES(mutex_);
  void reserve_around(std::uintptr_t address, std::size_t bytes) HPE_REQUIRES(mutex_);
  [[nodiscard]] bool shareable(CUdevice home) const;
  void import_part(std::uintptr_t address, const shared_part& part) HPE_REQUIRES(mutex_);

  const driver& cu_;
  const uvas_layout layout_;
  mutable shared_mutex mutex_;
  std::vector<bool> reserved_ HPE_GUARDED_BY(mutex_);  // by segment
  interval_map<std::uintptr_t, mapping> mappings_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::device::cuda
