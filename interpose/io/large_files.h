#pragma once

/// Large transfers between regular files and memory of hpe, in pieces: while devices copy one, the file system moves
/// others. To the program it is one call: its count, errno and file position, and no byte of memory changes beyond the
/// count.
///
/// The position of the file is moved on first, so that other threads and processes that share it find their own bytes, as
/// they do with one call of the kernel. A write at the end of a file (O_APPEND) must stay one call and is not done here.

#include <sys/types.h>

#include <optional>

#include "interpose/buffer_access.h"

namespace hpe::interpose {

/// What read, or pread if there is an offset, returns, with its errno. Nothing if the call is too small, or not for this
/// kind of file or range, or wrong in any way; then nothing has happened. Negative offsets are wrong. p lies in memory of
/// hpe. Reads through the next functions.
[[nodiscard]] std::optional<ssize_t> large_read(const char* call, int file, void* p, std::size_t bytes,
                                                std::optional<off_t> offset = {});
[[nodiscard]] std::optional<ssize_t> large_write(const char* call, int file, const void* p, std::size_t bytes,
                                                 std::optional<off_t> offset = {});

/// Bytes of a piece, a multiple of every alignment that files ask for.
inline constexpr std::size_t piece_of_file = std::size_t{4} << 20;

}  // namespace hpe::interpose
