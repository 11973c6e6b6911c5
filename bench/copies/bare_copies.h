#pragma once

/// Copies as a program writes them that has no hpe, on a second set of the same devices: the reference of the sweep
/// over transfer sizes and of transfers of files.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/memory/uvas.h"

namespace hpe::bench {

/// From where to where: devices by number, or the host.
struct direction {
  static constexpr int host = -1;
  int from;
  int to;
};

/// Memory in two lanes, so that two threads can copy in opposite directions and share nothing but the links.
class bare_copies {
 public:
  /// `largest`: bytes of each piece of memory. specification: as in HPE_DEVICES.
  bare_copies(const std::string& specification, std::size_t largest);

  [[nodiscard]] unsigned devices() const { return devices_->size(); }
  [[nodiscard]] bool direct(direction way) const;

  /// The copy engine's own: device and pinned memory. Each returns when the bytes are there.
  void plain(direction way, int lane, std::size_t bytes);
  /// From or to pageable memory, or between devices, through one pinned buffer as large as the transfer.
  void staged(direction way, int lane, std::byte* pageable, std::size_t bytes);
  /// The same through two small ones that are filled and emptied in turns.
  void double_buffered(direction way, int lane, std::byte* pageable, std::size_t bytes);

  /// For schemes that have more to do than to copy: a lane's pinned memory, a queued copy between memory of a device
  /// and pinned memory, from `at` on, and the wait for it.
  [[nodiscard]] std::byte* pinned(int lane) const;
  [[nodiscard]] timepoint queue(direction way, int lane, std::size_t at, std::byte* pinned, std::size_t bytes) const;
  void finish(timepoint point) const;

 private:
  static constexpr std::size_t chunk = std::size_t{2} << 20;
  static constexpr int lanes = 2;

  [[nodiscard]] std::byte* memory(int device, int lane) const;
  [[nodiscard]] device::stream& stream(int device, int lane) const;

  const std::size_t largest_;
  memory::uvas space_;
  std::unique_ptr<device::device_set> devices_;
  std::vector<device::stream*> streams_;  // two for each device
  bool spins_ = false;
};

}  // namespace hpe::bench
