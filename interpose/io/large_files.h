#pragma once

/// Makes large transfers between regular files and hpe memory in pieces: while devices copy one piece, the file system
/// reads or writes others. The program sees a single call: count, errno and file position are those of a single call,
/// and memory after the first `count` bytes does not change.
///
/// The file position is changed first, so that other threads and processes that share the position use other bytes of
/// the file, as during a single system call. A write to the end of a file (O_APPEND) must remain a single system call,
/// so these functions do not handle it.

#include <sys/types.h>

#include <cstddef>
#include <optional>

#include "interpose/buffer_access.h"

namespace hpe::interpose {

/// The result and errno are those of read and write or, if an offset is given, of pread and pwrite. Returns nullopt,
/// without effect, if the call is too small or invalid (for example, with a negative offset), or if these functions do
/// not handle the file or the range. `p` must be in hpe memory. System calls are made through namespace next.
[[nodiscard]] std::optional<ssize_t> large_read(const char* call, int file, void* p, std::size_t bytes,
                                                std::optional<off_t> offset = {});
[[nodiscard]] std::optional<ssize_t> large_write(const char* call, int file, const void* p, std::size_t bytes,
                                                 std::optional<off_t> offset = {});

/// The last pieces of a file that have been read and that devices may still be copying. Only a few pieces exist, so
/// that their memory is reused: the memory stays in the caches and is pinned only once.
class arrivals {
 public:
  /// Queues the copy of the first `bytes` bytes of a piece and waits for the oldest piece. Throws hpe::error.
  void add(buffer_access piece, std::size_t bytes);

 private:
  static constexpr std::size_t most = 4;
  buffer_access pieces_[most];
  std::size_t next_ = 0;
};

/// The number of bytes of a piece, a multiple of every alignment that direct I/O requires.
inline constexpr std::size_t piece_of_file = std::size_t{4} << 20;

}  // namespace hpe::interpose
