#pragma once

/// Large transfers between regular files and memory of hpe, in pieces: while devices copy one piece, the file system
/// reads or writes others. The program sees a single call, by its count, errno and file position; no byte of memory
/// beyond the count changes.
///
/// The file position is moved first, so that other threads and processes that share the position use other bytes of the
/// file, as with one call of the kernel. A write at the end of a file (O_APPEND) must stay one call and is not done
/// here.

#include <sys/types.h>

#include <cstddef>
#include <optional>

#include "interpose/buffer_access.h"

namespace hpe::interpose {

/// Results and errno are those of read and write or, with an offset, of pread and pwrite. Nothing if the call is too
/// small, is invalid (as with a negative offset), or has the wrong kind of file or range; then nothing has happened. p
/// lies in memory of hpe. The kernel is called through namespace next.
[[nodiscard]] std::optional<ssize_t> large_read(const char* call, int file, void* p, std::size_t bytes,
                                                std::optional<off_t> offset = {});
[[nodiscard]] std::optional<ssize_t> large_write(const char* call, int file, const void* p, std::size_t bytes,
                                                 std::optional<off_t> offset = {});

/// The last pieces that were read from a file and that devices still copy. There are only a few, so their memory is
/// reused: it stays in the caches and is pinned only once.
class arrivals {
 public:
  /// Queues the copy of the first `bytes` bytes of a piece; waits for the oldest piece. Throws hpe::error.
  void add(buffer_access piece, std::size_t bytes);

 private:
  static constexpr std::size_t most = 4;
  buffer_access pieces_[most];
  std::size_t next_ = 0;
};

/// Bytes of a piece, a multiple of every alignment that direct I/O requires.
inline constexpr std::size_t piece_of_file = std::size_t{4} << 20;

}  // namespace hpe::interpose
