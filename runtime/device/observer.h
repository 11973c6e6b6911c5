#pragma once

/// The interface through which traces (HPE_TRACE) observe the commands of devices.

#include <chrono>
#include <cstdint>
#include <string>

#include "runtime/device/device.h"

namespace hpe::device {

/// A command, in the form in which a stream reports it to the observer.
struct observed_command {
  enum class kind : std::uint8_t { copy, fill, launch, enqueue };

  kind what{};
  std::uintptr_t destination = 0;  ///< destination of a copy or fill
  std::uintptr_t source = 0;       ///< source of a copy
  std::size_t bytes = 0;
  std::uint32_t function = 0;  ///< for a launch: kernel_id::function
};

/// Observes all commands of a set (device_set::observe). Streams call the observer in the thread that queues a command.
/// Each stream reports its commands in the order in which they are queued.
class command_observer {
 public:
  virtual ~command_observer() = default;

  virtual void stream_created(unsigned device, std::uint32_t timeline, priority level) = 0;
  virtual void kernel_found(std::uint32_t function, const std::string& name) = 0;
  /// `asked`: the time when the stream began to queue the command.
  virtual void queued(const observed_command& command, timepoint point,
                      std::chrono::steady_clock::time_point asked) noexcept = 0;
  /// Called when later commands of a stream must wait for a point of another stream.
  virtual void waits(std::uint32_t timeline, timepoint point) noexcept = 0;
};

}  // namespace hpe::device
