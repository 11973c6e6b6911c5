#pragma once

/// A file without a name, for data that does not fit into host memory. The file is divided into extents of one size.
/// Reads and writes bypass the system's page cache (O_DIRECT) if the file system supports that. Disk space is allocated
/// before it is written, so that hpe notices a full disk before it moves data to the file.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/os/file_descriptor.h"

namespace hpe::os {

/// Thread-safe. Functions throw hpe::error with the folder and the reason.
class spill_file {
 public:
  /// Creates the file in a folder. Throws HPE_ERROR_SYSTEM on failure. The file disappears when the process ends.
  spill_file(std::string folder, std::uint64_t extent_bytes);

  /// Allocates an unused extent. Throws HPE_ERROR_OUT_OF_MEMORY if the disk is full, or if another extent would exceed
  /// the limit on the size of files (RLIMIT_FSIZE).
  [[nodiscard]] std::uint32_t take();
  void give_back(std::uint32_t extent) noexcept;

  /// Write or read `bytes` bytes at an offset in an extent. Addresses, offsets and sizes are multiples of the page
  /// size.
  void write(std::uint32_t extent, std::uint64_t offset, const std::byte* from, std::size_t bytes);
  void read(std::uint32_t extent, std::uint64_t offset, std::byte* into, std::size_t bytes) const;

  /// Returns the number of bytes that are free in the folder's file system now.
  [[nodiscard]] std::uint64_t room() const noexcept;
  [[nodiscard]] const std::string& folder() const noexcept { return folder_; }

 private:
  void grow(std::uint32_t extents) HPE_REQUIRES(mutex_);

  const std::string folder_;
  const std::uint64_t extent_bytes_;
  file_descriptor file_;
  mutex mutex_;
  std::uint32_t extents_ HPE_GUARDED_BY(mutex_) = 0;          // the number of extents in the file
  std::vector<std::uint32_t> unused_ HPE_GUARDED_BY(mutex_);  // capacity for all: give_back() allocates nothing
};

}  // namespace hpe::os
