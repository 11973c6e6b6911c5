#pragma once

/// The accesses of PTX kernels that a soft device records (HPE_CHECK). The device stores the numbers of accesses into a
/// memory file (runtime/ptx/build/access_recording.h); the owner reads the numbers when a launch has ended, and clears
/// them. Between two calls of take(), a device must not run more than one launch if the owner wants to know the
/// accesses of each.

#include <vector>

#include "runtime/base/function_ref.h"
#include "runtime/base/uvas_layout.h"
#include "runtime/device/device_ptx_module.h"
#include "runtime/os/file_descriptor.h"
#include "runtime/os/virtual_memory.h"
#include "runtime/ptx/build/access_recording.h"

namespace hpe::device::soft {

/// Returns where the devices record accesses: above the UVAS. The recorded addresses are those of the UVAS, of the
/// granule below it, and of heap_room bytes above it, where the device's heap is.
[[nodiscard]] ptx::record_places record_places_of(const uvas_layout& layout) noexcept;
/// The first address above the UVAS.
[[nodiscard]] inline std::uintptr_t heap_place_of(const uvas_layout& layout) noexcept {
  return layout.base + layout.size();
}

/// For a device: reserves the addresses at which accesses are recorded. Call this before the process has many mappings.
/// Throws HPE_ERROR_INITIALIZATION if the addresses are not free.
class recorded_memory {
 public:
  recorded_memory(const uvas_layout& layout, os::file_descriptor file);
  [[nodiscard]] bool contains(std::uint64_t address) const noexcept;

 private:
  os::file_descriptor file_;
  os::reservation space_;
};

/// For the owner. Calls for different devices may run at the same time.
class recorded_reader {
 public:
  recorded_reader(const uvas_layout& layout, unsigned devices);

  [[nodiscard]] int file(unsigned device) const noexcept { return files_[device].get(); }
  /// Calls visit for each stretch of bytes that kernels on the device have accessed since the last call.
  void take(unsigned device, function_ref<void(const recorded_stretch&)> visit) const;

 private:
  ptx::record_places places_;
  std::vector<os::file_descriptor> files_;  // by device
};

}  // namespace hpe::device::soft
