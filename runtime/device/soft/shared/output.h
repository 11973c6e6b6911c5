#pragma once

/// What kernels of PTX print: records in one memory file for each device. The device appends a record when a launch has
/// ended, and before its timepoint is reached; the owner takes them and gives their pages back. Nothing but memory
/// limits the size.

#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/device/ptx_module.h"
#include "runtime/device/soft/shared/fabric.h"
#include "runtime/os/file_descriptor.h"

namespace hpe::device::soft {

/// The device's end. Any thread.
class output_writer {
 public:
  output_writer(os::file_descriptor file, std::atomic<std::uint64_t>& written)
      : file_(std::move(file)), written_(written) {}

  /// launch is its number among those of all devices. Throws HPE_ERROR_SYSTEM when there is no memory for it.
  void append(std::uint64_t launch, std::string_view text, bool is_error);

 private:
  os::file_descriptor file_;
  mutex mutex_;
  std::atomic<std::uint64_t>& written_;
};

/// The owner's end. Any thread.
class output_reader {
 public:
  explicit output_reader(fabric& shared);

  [[nodiscard]] int file(unsigned device) const noexcept { return files_[device].get(); }
  /// What was appended since the last call, by the numbers of the launches. What is no record that output_writer made
  /// ends the output of its device, with a warning.
  [[nodiscard]] std::vector<printed> take();

 private:
  struct record {
    std::uint64_t launch;
    printed what;
  };

  /// False where the device's file has something else than records.
  bool take_from(unsigned device, std::vector<record>& records) HPE_REQUIRES(mutex_);

  fabric& fabric_;
  std::vector<os::file_descriptor> files_;  // by device
  mutex mutex_;
  std::vector<std::uint64_t> taken_ HPE_GUARDED_BY(mutex_);  // bytes, by device; ended: no more is taken
};

}  // namespace hpe::device::soft
