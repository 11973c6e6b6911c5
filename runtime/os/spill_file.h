#pragma once

/// A file without a name that holds bytes for which memory has no room, in extents of one size. Reads and writes bypass
/// the system's cache of files (O_DIRECT) where the file system can do that. Space is allocated before it is written,
/// so that a full disk is noticed before any byte depends on it.

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
  /// Makes the file in a folder (HPE_ERROR_SYSTEM if that fails). The file goes away with the process.
  spill_file(std::string folder, std::uint64_t extent_bytes);

  /// Takes an extent that nothing uses. Throws HPE_ERROR_OUT_OF_MEMORY if the disk or the limit of a file's size
  /// (RLIMIT_FSIZE) has no room for another one.
  [[nodiscard]] std::uint32_t take();
  void give_back(std::uint32_t extent) noexcept;

  /// Transfer `bytes` bytes at an offset of an extent. Addresses, offsets and sizes are multiples of the page size.
  void write(std::uint32_t extent, std::uint64_t offset, const std::byte* from, std::size_t bytes);
  void read(std::uint32_t extent, std::uint64_t offset, std::byte* into, std::size_t bytes) const;

  /// The bytes that the folder's file system has free now.
  [[nodiscard]] std::uint64_t room() const noexcept;
  [[nodiscard]] const std::string& folder() const noexcept { return folder_; }

 private:
  void grow(std::uint32_t extents) HPE_REQUIRES(mutex_);

  const std::string folder_;
  const std::uint64_t extent_bytes_;
  file_descriptor file_;
  mutex mutex_;
  std::uint32_t extents_ HPE_GUARDED_BY(mutex_) = 0;          // of the file
  std::vector<std::uint32_t> unused_ HPE_GUARDED_BY(mutex_);  // has room for all of them
};

}  // namespace hpe::os
