#pragma once

/// The rates of a machine's devices and links, and the price of moving arrays between devices. The planner predicts
/// launches from these numbers. Units: bytes, bytes per second, seconds.

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/spread/model/launch.h"

namespace hpe::spread {

/// The work of a move of an array to other homes (launch.h).
struct move_work {
  /// The number of ranges of memory that the move maps or unmaps. A range with one old home that loses bytes counts
  /// once. Each part of the range with one new home counts twice, because the move maps the part first in temporary
  /// memory.
  double ranges = 0;
  double bytes = 0;  // the number of bytes whose home changes
  [[nodiscard]] bool none() const { return ranges == 0 && bytes == 0; }
  move_work& operator+=(const move_work& other) {
    ranges += other.ranges;
    bytes += other.bytes;
    return *this;
  }
};

/// Predicts how long moves take, and corrects the prediction after each measured move.
class move_price {
 public:
  constexpr move_price(double range_seconds, double byte_seconds)
      : range_seconds_(range_seconds), byte_seconds_(byte_seconds) {}

  [[nodiscard]] double seconds(const move_work& w) const { return w.ranges * range_seconds_ + w.bytes * byte_seconds_; }
  /// Call this when a move has taken `seconds`. Multiplies each price by r^(w s): r is the measured time divided by the
  /// predicted time (from 1/8 to 8), s is the price's share of the predicted time, w is 1 at the first measured move
  /// (if the price is not from from_text) and 1/2 later. Keeps both prices within plausible limits.
  void took(const move_work& w, double seconds);

  /// Returns whether the price of a range and the price of a byte both differ from `other` by less than 10 %.
  [[nodiscard]] bool is_near(const move_price& other) const;
  /// Returns the price as one line for cache_file.
  [[nodiscard]] std::string as_text() const;
  /// Returns the price in a text from as_text(). Empty if the text has another format, or if the times are implausible.
  [[nodiscard]] static std::optional<move_price> from_text(const std::string& text);

 private:
  double range_seconds_, byte_seconds_;
  bool is_measured_ = false;
};

struct machine {
  std::uint32_t devices = 1;
  double local_rate = 3.4e12;   // accesses of a kernel to the memory of the device that runs it
  double memory_rate = 3.4e12;  // accesses of all devices together to the memory of one device
  double read_rate = 3.2e11;    // reads of another device's memory over a link, in one direction
  double write_rate = 3.5e11;   // writes to another device's memory over a link, in one direction
  bool shares_ports =
      true;  // true if each device has one port to a switch, false if each pair of devices has its own link
  double host_rate = 5e10;         // accesses of one device to host memory
  double host_memory_rate = 2e11;  // accesses of all devices together to host memory
  double copy_rate = 3.4e11;       // copies of replicas between two devices
  double instruction_rate = 2e13;  // thread instructions per second on one device
  double launch_seconds = 6e-6;    // host time to launch one part of a spread launch and to wait for it
  /// The measured time of the kernel's launches divided by the predicted time (way_record::scale). Times that do not
  /// depend on the kernel are divided by this number, so that they have the right ratio to the predicted times.
  double scale = 1;
  // The initial price, before a move was measured: seconds per range, and seconds per byte. The first is an estimate of
  // the driver's time to create, map and unmap memory. The second was measured on two H100: a move of 1 GB takes about
  // 10 ms, including allocating and clearing memory.
  move_price moves{1e-4, 1e-11};
  bool moves_empty_arrays_free = true;  // whether moving an array that was never written takes no time
  // The size of the largest array that each device can replicate.
  std::uint64_t replica_bytes = ~std::uint64_t{0};
  /// The device that runs launches that are not spread. If negative, the device whose memory contains most bytes of the
  /// launch's arrays runs them.
  device_number alone = -1;
};

}  // namespace hpe::spread
