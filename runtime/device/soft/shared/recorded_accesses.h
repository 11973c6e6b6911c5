#pragma once

/// The accesses of PTX kernels that a soft device records (HPE_CHECK). Kernels store the numbers of accesses into a
/// memory file of the device (runtime/ptx/build/access_recording.h). When a launch has ended, the device appends
/// stretches of bytes with the same number to a log in the same file, and the owner reads the log. Between two calls of
/// take(), a device must not run more than one launch if the owner wants to know the accesses of each.

#include <atomic>
#include <span>
#include <vector>

#include "runtime/base/function_ref.h"
#include "runtime/base/thread_safety.h"
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

/// The log of a device, behind the record in the device's file. The device appends, the owner takes. Thread-safe in
/// each process.
class access_log {
 public:
  static constexpr std::uint64_t room = std::uint64_t{64} << 30;

  /// `file`: must exist as long as the log. `offset`: where the log begins in the file.
  access_log(int file, std::uint64_t offset);

  void append(std::span<const recorded_stretch> accesses, std::span<const recorded_race> races);
  /// Removes all entries, and calls visit for each stretch. Appends the races to `races`.
  void take(function_ref<void(const recorded_stretch&)> visit, std::vector<recorded_race>& races);

 private:
  struct head;
  struct entry;
  [[nodiscard]] head& first() const noexcept;

  int file_;
  std::uint64_t offset_;
  os::reservation space_;
  mutex mutex_;
};

/// For the owner. Calls for different devices may run at the same time.
class recorded_reader {
 public:
  recorded_reader(const uvas_layout& layout, unsigned devices);

  [[nodiscard]] int file(unsigned device) const noexcept { return devices_[device]->file.get(); }
  /// Calls visit for each stretch of bytes that kernels on the device have accessed since the last call.
  void take(unsigned device, function_ref<void(const recorded_stretch&)> visit);
  /// Returns the races in the launches whose accesses take() has visited.
  [[nodiscard]] std::vector<recorded_race> take_races(unsigned device);

 private:
  struct of_device {
    explicit of_device(const ptx::record_places& places);
    os::file_descriptor file;
    access_log log;
    hpe::mutex mutex;
    std::vector<recorded_race> races HPE_GUARDED_BY(mutex);
  };
  std::vector<std::unique_ptr<of_device>> devices_;
};

}  // namespace hpe::device::soft
