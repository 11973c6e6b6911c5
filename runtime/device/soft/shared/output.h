#pragma once

/// The text that PTX kernels print, as records in one memory file for each device. When a launch has ended, the device
/// appends a record before the launch's timepoint is reached. The owner removes the records and frees their pages. The
/// size of the files is limited only by memory.

#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/device/ptx_module.h"
#include "runtime/device/soft/shared/fabric.h"
#include "runtime/os/file_descriptor.h"

namespace hpe::device::soft {

/// The device's end of the output file. Thread-safe.
class output_writer {
 public:
  output_writer(os::file_descriptor file, std::atomic<std::uint64_t>& written)
      : file_(std::move(file)), written_(written) {}

  /// `launch`: the launch's number among the launches of all devices. Throws HPE_ERROR_SYSTEM if there is no memory for
  /// the text.
  void append(std::uint64_t launch, std::string_view text, bool is_error);

 private:
  os::file_descriptor file_;
  mutex mutex_;
  std::atomic<std::uint64_t>& written_;
};

/// The owner's end of all output files. Thread-safe.
class output_reader {
 public:
  explicit output_reader(fabric& shared);

  [[nodiscard]] int file(unsigned device) const noexcept { return files_[device].get(); }
  /// Returns the texts that were appended since the last call, ordered by launch. After a malformed record, hpe logs a
  /// warning and reads no more output of that device.
  [[nodiscard]] std::vector<printed> take();

 private:
  struct record {
    std::uint64_t launch;
    printed what;
  };

  /// Returns false if the device's file contains anything other than valid records.
  bool take_from(unsigned device, std::vector<record>& records) HPE_REQUIRES(mutex_);

  fabric& fabric_;
  std::vector<os::file_descriptor> files_;  // by device
  mutex mutex_;
  std::vector<std::uint64_t> taken_ HPE_GUARDED_BY(mutex_);  // for each device, the bytes that were read from its file;
                                                             // `ended`: no more output is read
};

}  // namespace hpe::device::soft
