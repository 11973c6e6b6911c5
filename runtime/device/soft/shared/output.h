#pragma once

/// The output of kernels of PTX: records in one memory file for each device. The device appends a record when a launch
/// has ended, before its timepoint is reached. The owner takes the records and gives their pages back. Only memory
/// limits the size.

#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/device/ptx_module.h"
#include "runtime/device/soft/shared/fabric.h"
#include "runtime/os/file_descriptor.h"

namespace hpe::device::soft {

/// The device's end. Thread-safe.
class output_writer {
 public:
  output_writer(os::file_descriptor file, std::atomic<std::uint64_t>& written)
      : file_(std::move(file)), written_(written) {}

  /// launch: its number among the launches of all devices. Throws HPE_ERROR_SYSTEM if there is no memory for the text.
  void append(std::uint64_t launch, std::string_view text, bool is_error);

 private:
  os::file_descriptor file_;
  mutex mutex_;
  std::atomic<std::uint64_t>& written_;
};

/// The owner's end. Thread-safe.
class output_reader {
 public:
  explicit output_reader(fabric& shared);

  [[nodiscard]] int file(unsigned device) const noexcept { return files_[device].get(); }
  /// The texts appended since the last call, ordered by launch. A malformed record ends the output of its device, with
  /// a warning.
  [[nodiscard]] std::vector<printed> take();

 private:
  struct record {
    std::uint64_t launch;
    printed what;
  };

  /// Returns false if the device's file has something other than records.
  bool take_from(unsigned device, std::vector<record>& records) HPE_REQUIRES(mutex_);

  fabric& fabric_;
  std::vector<os::file_descriptor> files_;  // by device
  mutex mutex_;
  std::vector<std::uint64_t> taken_ HPE_GUARDED_BY(mutex_);  // bytes, by device; `ended`: no more is taken
};

}  // namespace hpe::device::soft
