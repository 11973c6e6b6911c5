#pragma once

/// Divides large transfers between regular files and hpe memory into chunks: while devices copy one chunk, the file
/// system reads or writes other chunks. To the program, the transfer looks like a single call: the result, errno and
/// the file position are those of a single call, and a read does not change memory beyond the bytes that it has read.
///
/// hpe changes the file position before the transfer, so that other threads and processes that share the position use
/// other bytes of the file, as during a single system call. A write to the end of a file (O_APPEND) must remain a
/// single system call, so these functions do not handle it.

#include <sys/types.h>

#include <cstddef>
#include <optional>

#include "interpose/buffer_access.h"

namespace hpe::interpose {

/// The result and errno are those of read and write or, if an offset is given, of pread and pwrite. Returns nullopt,
/// without effect, if the transfer is too small or invalid (for example, with a negative offset), or if these functions
/// do not support the file or the range. `p` must be in hpe memory or adopted memory.
[[nodiscard]] std::optional<ssize_t> large_read(const char* call, int file, void* p, std::size_t bytes,
                                                std::optional<off_t> offset = {});
[[nodiscard]] std::optional<ssize_t> large_write(const char* call, int file, const void* p, std::size_t bytes,
                                                 std::optional<off_t> offset = {});

/// The chunks of a file that have been read last and that devices may not have copied yet. Only a few chunks exist at a
/// time, so that later chunks reuse their staging memory, which stays in the CPU's caches and is pinned only once.
class chunks_in_flight {
 public:
  /// Queues the copy of the first `bytes` bytes of a chunk and waits for the oldest chunk. Throws hpe::error.
  void add(buffer_access chunk, std::size_t bytes);

 private:
  static constexpr std::size_t most = 4;
  buffer_access chunks_[most];
  std::size_t next_ = 0;
};

/// The number of bytes of a chunk, a multiple of every alignment that direct I/O requires.
inline constexpr std::size_t file_chunk_size = std::size_t{4} << 20;

}  // namespace hpe::interpose
