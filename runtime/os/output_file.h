#pragma once

#include <cstdint>
#include <string>

#include "runtime/os/file_descriptor.h"

namespace hpe::os {

/// Writes a file as a whole. Until close() an existing file of this name is unchanged, even if close() is never reached
/// or fails: the bytes are written to a new file in the same folder, which close() renames. Devices, FIFOs, and links
/// of /proc to open files (for example /dev/stdout) are written in place instead: each write() appends its bytes at
/// once. A file that has further names (hard links) or belongs to another user, and a file in a folder that permits no
/// new files, are also written in place: if the constructor is given the size of the file, disk space is reserved
/// before the first byte is overwritten. Symbolic links are followed. A replaced file keeps its permissions. Only one
/// thread at a time may use an object.
///
/// Errors are hpe::error (HPE_ERROR_SYSTEM) whose text begins with "cannot write " and the path.
class output_file {
 public:
  /// Throws if the path cannot be written, or if its file system has no space for `bytes` bytes. bytes: the size of the
  /// file; 0 if it is not known. Does not write yet. A FIFO is opened by the first write, which waits for a reader.
  explicit output_file(std::string path, std::uint64_t bytes = 0);
  /// Discards the written bytes, unless close() has returned.
  ~output_file();
  output_file(const output_file&) = delete;
  output_file& operator=(const output_file&) = delete;

  /// Appends bytes.
  void write(const void* from, std::uint64_t bytes);
  void write(const std::string& text) { write(text.data(), text.size()); }

  /// Completes the file, which then has the name that the constructor was given. If a file of this name exists, it is
  /// replaced after the new file has reached the disk.
  void close();

  /// Follows the symbolic links of a path, at most 40, and returns the name to which they lead. Does not follow links
  /// of /proc. Throws HPE_ERROR_SYSTEM for a loop.
  [[nodiscard]] static std::string behind_links(const std::string& path);

 private:
  enum class way { replace, overwrite, append };

  [[noreturn]] void fail(int why);  // discards the new file
  void discard() noexcept;
  [[nodiscard]] std::string unused_name() const;
  void begin_new_file();
  void reserve(std::uint64_t bytes);

  const std::string path_, target_;  ///< the given path, and the path to which its links lead
  way how_ = way::replace;
  bool replaces_ = false;  ///< a file of that name exists
  file_descriptor file_;
  std::string made_;  ///< the temporary name of the new file; empty if it has none
  std::uint64_t written_ = 0;
};

/// Writes a text to a file through output_file.
void write_file(const std::string& path, const std::string& text);

}  // namespace hpe::os
