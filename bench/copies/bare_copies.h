#pragma once

/// Copies as a program without hpe writes them, on a second set of the same devices. They are the reference for the
/// sweep over transfer sizes and for file transfers.

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

/// Each of two lanes has its own memory, so that two threads can copy in opposite directions and share only the links.
class bare_copies {
 public:
  /// largest: the bytes of the largest copy, and so of each buffer. specification: the devices, as in HPE_DEVICES.
  bare_copies(const std::string& specification, std::size_t largest);

  [[nodiscard]] unsigned devices() const { return devices_->size(); }
  [[nodiscard]] bool direct(direction way) const;

  /// Copies between a device and pinned memory by the copy engine. This function and the two below return when the data
  /// has arrived.
  void plain(direction way, int lane, std::size_t bytes);
  /// Copies from or to pageable memory, or between devices, through one pinned buffer as large as the transfer.
  void staged(direction way, int lane, std::byte* pageable, std::size_t bytes);
  /// Makes the same copies through two small buffers: one is filled while the other is emptied.
  void double_buffered(direction way, int lane, std::byte* pageable, std::size_t bytes);

  /// Parts for other schemes: pinned() returns a lane's pinned memory, queue() queues a copy between the device memory
  /// at offset `at` and pinned memory, and finish() waits for a copy.
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
