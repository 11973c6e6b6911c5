#pragma once

/// Open files whose reads and writes transfer all bytes unless an error or the file's end stops them, for the readers
/// and writers of this folder.

#include <cstdint>
#include <string>
#include <string_view>

#include "apps/command_line/bad_input.h"

namespace hpe::files {

using command_line::bad_input;

/// Returns the system's message for errno.
[[nodiscard]] std::string reason();

/// A file descriptor; closed by the destructor.
class descriptor {
 public:
  /// Opens a file with the flags of open(). If this fails, good() is false and errno has the reason.
  descriptor(const std::string& path, int flags);
  descriptor(descriptor&& other) noexcept;
  descriptor& operator=(descriptor&&) = delete;
  ~descriptor();

  [[nodiscard]] bool good() const { return number_ >= 0; }
  [[nodiscard]] int get() const { return number_; }

  /// Closes the file; returns whether that succeeded.
  [[nodiscard]] bool close();

  /// Reads `bytes` bytes at offset `from`, and returns the number of bytes read. If this is less than `bytes`, errno
  /// has the reason, or is 0 at the file's end.
  [[nodiscard]] std::uint64_t read_at(void* to, std::uint64_t bytes, std::uint64_t from) const;

  /// Writes bytes at the file's position, and moves the position. Returns whether all bytes were written; if not, errno
  /// has the reason.
  [[nodiscard]] bool write(const void* from, std::uint64_t bytes) const;

 private:
  int number_;
};

/// Returns the reason why a file that begins with these bytes cannot be read directly, although it may hold the right
/// data: it is compressed, an archive, or text in UTF-16. Empty for other files.
[[nodiscard]] std::string container_of(std::string_view begin);

/// Returns the first 60 of the bytes as text for a message, and "..." if there are more. Bytes that are not printable
/// ASCII are written as in \x1f.
[[nodiscard]] std::string printable(std::string_view bytes);

/// Opens a file to read. Throws bad_input if that fails.
[[nodiscard]] descriptor open_to_read(const std::string& path);

/// Returns the size of an open file in bytes. Throws bad_input if the file is not a regular file.
[[nodiscard]] std::uint64_t size_of(const descriptor& file, const std::string& path);

}  // namespace hpe::files
