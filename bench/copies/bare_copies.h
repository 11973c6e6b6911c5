#pragma once

/// Copies as a program without hpe writes them. The copies use the same devices as hpe, opened a second time. The sweep
/// over transfer sizes and the file transfers are compared with these copies.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/memory/uvas.h"

namespace hpe::bench {

/// Source and target of a copy: the number of a device, or the host.
struct direction {
  static constexpr int host = -1;
  int from;
  int to;
};

/// Copies on one of two lanes. A lane has its own device memory, pinned memory and streams, so that two threads on
/// different lanes can copy in opposite directions and share only the links.
class bare_copies {
 public:
  /// largest: the size of each buffer, and thus the largest copy, in bytes. specification: the devices, in the syntax
  /// of HPE_DEVICES.
  bare_copies(const std::string& specification, std::size_t largest);

  [[nodiscard]] unsigned devices() const { return devices_->size(); }
  [[nodiscard]] bool direct(direction way) const;

  /// Copies between a device and pinned memory, or between two devices, with one copy of the device. plain(), staged()
  /// and double_buffered() return when the copy is done.
  void plain(direction way, int lane, std::size_t bytes);
  /// Copies from or to pageable memory, or between devices, through one pinned buffer that is as large as the transfer.
  void staged(direction way, int lane, std::byte* pageable, std::size_t bytes);
  /// Copies as staged() does, but through two small pinned buffers: one is filled while the other is emptied.
  void double_buffered(direction way, int lane, std::byte* pageable, std::size_t bytes);

  /// Building blocks for other copy schemes: pinned() returns a lane's pinned memory, queue() queues a copy between the
  /// device memory at offset `at` and pinned memory, and finish() waits for a queued copy.
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
