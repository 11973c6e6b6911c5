#pragma once

/// The text that PTX kernels print. Each device has a memory file, to which it appends the text of each launch as
/// records before the launch's timepoint is reached. The owner reads the records and frees their pages. The size of the
/// files is limited only by the machine's memory.

#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/device/device_ptx_module.h"
#include "runtime/device/soft/shared/fabric.h"
#include "runtime/os/file_descriptor.h"

namespace hpe::device::soft {

/// Writes the output file, in the device process. Thread-safe.
class output_writer {
 public:
  output_writer(os::file_descriptor file, std::atomic<std::uint64_t>& written)
      : file_(std::move(file)), written_(written) {}

  /// Appends a record. `launch`: the launch's number among the launches of all devices. `is_error`: whether the text is
  /// for standard error. Throws HPE_ERROR_SYSTEM if the text cannot be written, for example because the machine's
  /// memory is full.
  void append(std::uint64_t launch, std::string_view text, bool is_error);

 private:
  os::file_descriptor file_;
  mutex mutex_;
  std::atomic<std::uint64_t>& written_;
};

/// Reads the output files of all devices, in the owner. Thread-safe.
class output_reader {
 public:
  explicit output_reader(fabric& shared);

  [[nodiscard]] int file(unsigned device) const noexcept { return files_[device].get(); }
  /// Returns the texts that devices have appended since the last call, ordered by launch. If a device's file contains
  /// an invalid record, this logs a warning and reads no more output of this device.
  [[nodiscard]] std::vector<printed> take();

 private:
  struct record {
    std::uint64_t launch;
    printed what;
  };

  /// Reads the new records of one device. Returns false if the file contains an invalid record.
  bool take_from(unsigned device, std::vector<record>& records) HPE_REQUIRES(mutex_);

  fabric& fabric_;
  std::vector<os::file_descriptor> files_;  // by device
  mutex mutex_;
  std::vector<std::uint64_t> taken_ HPE_GUARDED_BY(mutex_);  // for each device, the bytes that were read from its file;
                                                             // `ended`: no more output is read
};

}  // namespace hpe::device::soft
