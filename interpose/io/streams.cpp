#include "interpose/io/streams.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>

namespace hpe::interpose {

namespace {

// The largest number of bytes that a call on a pipe or stream socket stages, unless it is a blocking write. Pipes of
// unprivileged users hold at most 1 MiB, and TCP send buffers at most 4 MiB by default (net.ipv4.tcp_wmem). If a
// receive buffer contains more, the call returns a smaller count.
constexpr std::size_t enough = std::size_t{4} << 20;

bool is_stream(int file) noexcept {
  struct stat status {};
  if (::fstat(file, &status) != 0) return false;
  if (S_ISFIFO(status.st_mode)) return true;
  int type = 0;
  socklen_t size = sizeof type;
  return S_ISSOCK(status.st_mode) && ::getsockopt(file, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

}  // namespace

std::size_t most_of_stream(int file, std::size_t bytes, host_use use, bool never_blocks) noexcept {
  if (bytes <= enough) return bytes;
  const int before = errno;
  const bool partly =
      (use == host_use::write || never_blocks || (::fcntl(file, F_GETFL) & O_NONBLOCK) != 0) && is_stream(file);
  errno = before;
  return partly ? enough : bytes;
}

}  // namespace hpe::interpose
