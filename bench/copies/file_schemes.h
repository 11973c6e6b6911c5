#pragma once

/// Transfers between a file and a device, as programs without hpe write them. The transfers use the same devices as
/// hpe, opened a second time.

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "bench/copies/bare_copies.h"
#include "bench/copies/driver_copy.h"

namespace hpe::bench {

/// An unnamed file of a given size. Reads and writes use the page cache, or bypass it (O_DIRECT).
class disk_file {
 public:
  disk_file(const std::string& folder, std::size_t bytes, bool direct);
  ~disk_file();
  disk_file(const disk_file&) = delete;
  disk_file& operator=(const disk_file&) = delete;

  [[nodiscard]] bool good() const { return file_ >= 0; }
  [[nodiscard]] const std::string& why() const { return why_; }

  /// Each function makes one system call. If the call does not transfer all bytes, the function ends the program with
  /// an error message.
  void read(void* p, std::size_t bytes, off_t offset) const;
  void write(const void* p, std::size_t bytes, off_t offset) const;

 private:
  int file_;
  std::string why_;
};

class hand_made {
 public:
  /// largest: the size of each buffer, and thus the largest transfer, in bytes. specification: the devices, in the
  /// syntax of HPE_DEVICES.
  hand_made(const std::string& specification, std::size_t largest);

  /// Returns the rate of one copy between pinned memory and the device, in GB/s.
  [[nodiscard]] double link(bool to_device, std::size_t bytes, unsigned repeats);

  /// Reads the whole file into pageable memory and then copies it to the device, or the reverse: by the CUDA driver if
  /// there is one, else by hpeMemcpy.
  void naive_in(const disk_file& file, std::size_t bytes);
  void naive_out(const disk_file& file, std::size_t bytes);
  /// The same transfers through one pinned buffer that is as large as the transfer.
  void pinned_in(const disk_file& file, std::size_t bytes);
  void pinned_out(const disk_file& file, std::size_t bytes);
  /// The same transfers through two small pinned buffers: the file is read or written in one while the device copies
  /// the other.
  void doubled_in(const disk_file& file, std::size_t bytes);
  void doubled_out(const disk_file& file, std::size_t bytes);
  /// Transfer between the file and pageable memory, without a device.
  void file_in(const disk_file& file, std::size_t bytes) { file.read(pageable_, bytes, 0); }
  void file_out(const disk_file& file, std::size_t bytes) { file.write(pageable_, bytes, 0); }

 private:
  static constexpr std::size_t chunk = std::size_t{4} << 20;
  static constexpr direction up{direction::host, 0};
  static constexpr direction down{0, direction::host};

  bare_copies bare_;
  std::byte* pinned_;
  std::vector<std::byte> storage_;
  std::byte* pageable_;  // in storage_, aligned for O_DIRECT
  pageable_copy driver_;
  void* hpes_ = nullptr;  // memory of an hpe device, used if there is no CUDA driver
};

}  // namespace hpe::bench
