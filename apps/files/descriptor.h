#pragma once

/// Open files with all-or-nothing reads and writes, for the readers and writers of this folder.

#include <cstdint>
#include <string>

#include "apps/command_line/bad_input.h"

namespace hpe::files {

using command_line::bad_input;

/// The text for errno.
[[nodiscard]] std::string reason();

/// A file descriptor; closed by the destructor.
class descriptor {
 public:
  /// flags as for open(). Sets errno if that fails.
  descriptor(const std::string& path, int flags);
  descriptor(descriptor&& other) noexcept;
  descriptor& operator=(descriptor&&) = delete;
  ~descriptor();

  [[nodiscard]] bool good() const { return number_ >= 0; }
  [[nodiscard]] int get() const { return number_; }

  /// Closes the file; returns whether that succeeded.
  [[nodiscard]] bool close();

  /// Reads up to `bytes` bytes from the given place; returns how many there were. If fewer, errno has the reason, or is
  /// 0 at the file's end.
  [[nodiscard]] std::uint64_t read_at(void* to, std::uint64_t bytes, std::uint64_t from) const;

  /// Writes behind what was written before. Returns whether all bytes were written; errno has the reason if not.
  [[nodiscard]] bool write(const void* from, std::uint64_t bytes) const;

 private:
  int number_;
};

/// Opens a file to read. Throws bad_input if that fails.
[[nodiscard]] descriptor open_to_read(const std::string& path);

/// Bytes of an open file. Throws bad_input if it is not a regular file.
[[nodiscard]] std::uint64_t size_of(const descriptor& file, const std::string& path);

}  // namespace hpe::files
