#include "interpose/io/large_files.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "interpose/io/next.h"
#include "interpose/io/ordered_workers.h"
#include "interpose/io/staged_call.h"
#include "runtime/os/thread.h"

// Invariant: a read changes the program's memory in the order of addresses, and changes only bytes that the operating
// system has read.
//
// Several threads read chunks of a file in any order, because one core reads the page cache more slowly than a GPU can
// copy the data, and because a disk is idle between requests if there is only one at a time. For a write, the calling
// thread writes the chunks in order. So a full disk leaves the same file as a single call would, and the calling thread
// receives signals (SIGXFSZ).

namespace hpe::interpose {

namespace {

constexpr std::size_t alignment_of_direct = 4096;

constexpr std::size_t least = 2 * file_chunk_size;

struct file_chunk {
  buffer_access memory;
  outcome read{0};
};

// A range of a file, transferred in chunks.
struct file_range {
  off_t begin;
  std::size_t bytes;
  bool at_position;
  bool direct;
  std::size_t chunk;

  [[nodiscard]] std::size_t chunks() const { return (bytes + chunk - 1) / chunk; }
  [[nodiscard]] std::size_t size_of(std::size_t i) const { return std::min(chunk, bytes - i * chunk); }
  [[nodiscard]] off_t begin_of(std::size_t i) const { return begin + static_cast<off_t>(i * chunk); }
};

// Disables cancellation of the thread while an object exists. The constructor first acts on a pending cancellation
// request, as any cancellation point does.
class uncancelled {
 public:
  uncancelled() {
    ::pthread_testcancel();
    ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_);
  }
  ~uncancelled() { ::pthread_setcancelstate(before_, nullptr); }
  uncancelled(const uncancelled&) = delete;
  uncancelled& operator=(const uncancelled&) = delete;

 private:
  int before_ = 0;
};

// The destructor restores the value that errno had when the object was constructed.
class errno_kept {
 public:
  errno_kept() = default;
  ~errno_kept() { errno = before_; }
  errno_kept(const errno_kept&) = delete;
  errno_kept& operator=(const errno_kept&) = delete;

 private:
  const int before_ = errno;
};

// Returns the number of helper threads. A helper that reads from a disk (direct I/O) mostly waits, whereas a helper
// that reads the page cache keeps a core busy.
unsigned helpers_for_reading(bool direct) {
  static const unsigned cores = os::usable_cores();
  return direct ? 6 : std::clamp(cores / 2, 1U, 8U);
}

constexpr unsigned helpers_for_writing = 2;

// The number of bytes in a chunk of a direct write. These chunks are larger than other chunks, because the disk is idle
// between two direct writes.
constexpr std::size_t direct_write_chunk_size = 8 * file_chunk_size;

// Returns the range to transfer; nullopt if this file cannot be transferred in chunks.
std::optional<file_range> plan(int file, const void* p, std::size_t bytes, std::optional<off_t> offset, host_use use) {
  const errno_kept during;
  struct stat status {};
  const int flags = ::fcntl(file, F_GETFL);
  const bool writes = use == host_use::read;
  if (flags == -1 || ::fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) return {};
  if ((flags & O_PATH) != 0 || (flags & O_ACCMODE) == (writes ? O_RDONLY : O_WRONLY)) return {};
  if (writes && (flags & O_APPEND) != 0) return {};
  const bool direct = (flags & O_DIRECT) != 0;
  if (direct && bytes % alignment_of_direct != 0) return {};

  const off_t begin = offset ? *offset : ::lseek(file, 0, SEEK_CUR);
  constexpr off_t last = std::numeric_limits<off_t>::max() - static_cast<off_t>(most_of_one_call);
  if (begin < 0 || begin > last) return {};
  std::size_t most = std::min(bytes, most_of_one_call);
  if (writes) {
    struct rlimit limit {};
    if (::getrlimit(RLIMIT_FSIZE, &limit) != 0) return {};
    if (limit.rlim_cur != RLIM_INFINITY)
      most = std::min<std::size_t>(most, limit.rlim_cur - std::min<rlim_t>(limit.rlim_cur, static_cast<rlim_t>(begin)));
  } else {
    if (status.st_size <= begin) return {};
    const auto left = static_cast<std::size_t>(status.st_size - begin);
    if (left > std::numeric_limits<std::size_t>::max() - alignment_of_direct) return {};
    most = std::min(most, direct ? (left + alignment_of_direct - 1) / alignment_of_direct * alignment_of_direct : left);
  }
  if (most < least || allocated(p, most) < most) return {};
  return file_range{begin, most, !offset, direct, writes && direct ? direct_write_chunk_size : file_chunk_size};
}

// For a transfer at the file position, the constructor moves the position to the end of the range. `moved` moves it
// back by the number of bytes that were not transferred.
class reservation {
 public:
  reservation(int file, file_range& what) : file_(file), bytes_(what.at_position ? what.bytes : 0) {
    if (bytes_ == 0) return;
    const off_t end = ::lseek(file, static_cast<off_t>(bytes_), SEEK_CUR);
    good_ = end >= 0;
    what.begin = end - static_cast<off_t>(bytes_);
  }
  [[nodiscard]] bool good() const { return good_; }
  void moved(std::size_t bytes) const {
    if (bytes_ > bytes) ::lseek(file_, static_cast<off_t>(bytes) - static_cast<off_t>(bytes_), SEEK_CUR);
  }

 private:
  int file_;
  std::size_t bytes_;
  bool good_ = true;
};

// Transfers a range by calling move(range, done), which adds the number of transferred bytes to `done` and returns the
// errno of the failure that stopped the transfer, or 0. Returns nullopt if the file position cannot be moved.
template <class Move>
std::optional<ssize_t> move_all(const char* call, int file, file_range what, Move move) {
  const reservation position(file, what);
  if (!position.good()) return {};
  return staged_call(call, [&] {
    std::size_t done = 0;
    int error = 0;
    try {
      error = move(what, done);
    } catch (const hpe::error& failure) {
      error = error_number(call, failure);
    }
    position.moved(done);
    // After a failure, the result is the number of bytes transferred so far, as if the disk had failed in the middle of
    // a single call.
    errno = error;
    return outcome(done == 0 && error != 0 ? -1 : static_cast<ssize_t>(done));
  });
}

}  // namespace

void chunks_in_flight::add(buffer_access chunk, std::size_t bytes) {
  chunk.written(0, bytes);
  buffer_access& oldest = chunks_[next_];
  oldest.refresh();
  oldest = std::move(chunk);
  next_ = (next_ + 1) % most;
}

std::optional<ssize_t> large_read(const char* call, int file, void* p, std::size_t bytes, std::optional<off_t> offset) {
  if (bytes < least) return {};
  const uncancelled during;
  const auto what = plan(file, p, bytes, offset, host_use::write);
  if (!what) return {};
  return move_all(call, file, *what, [&](const file_range& r, std::size_t& done) {
    std::vector<file_chunk> chunks(r.chunks());
    const unsigned helpers = helpers_for_reading(r.direct);
    chunks_in_flight on_their_way;
    ordered_workers workers(chunks.size(), helpers + 3, helpers, [&](std::size_t i) {
      file_chunk& it = chunks[i];
      it.memory = buffer_access(static_cast<std::byte*>(p) + i * r.chunk, r.size_of(i), host_use::write);
      it.read = outcome(next::pread(file, it.memory.data(), r.size_of(i), r.begin_of(i)));
    });
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      workers.wait(i);
      file_chunk it = std::move(chunks[i]);
      if (it.read.count <= 0) return it.read.error;
      on_their_way.add(std::move(it.memory), static_cast<std::size_t>(it.read.count));
      tell_touch(static_cast<std::byte*>(p) + done, static_cast<std::size_t>(it.read.count), host_use::write);
      done += static_cast<std::size_t>(it.read.count);
      if (static_cast<std::size_t>(it.read.count) < r.size_of(i)) return 0;
    }
    return 0;
  });
}

std::optional<ssize_t> large_write(const char* call, int file, const void* p, std::size_t bytes,
                                   std::optional<off_t> offset) {
  if (bytes < least) return {};
  const uncancelled during;
  const auto what = plan(file, p, bytes, offset, host_use::read);
  if (!what) return {};
  tell_touch(p, what->bytes, host_use::read);
  return move_all(call, file, *what, [&](const file_range& r, std::size_t& done) {
    std::vector<buffer_access> chunks(r.chunks());
    ordered_workers workers(chunks.size(), helpers_for_writing + 1, helpers_for_writing, [&](std::size_t i) {
      chunks[i] = buffer_access(static_cast<const std::byte*>(p) + i * r.chunk, r.size_of(i), host_use::read);
    });
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      workers.wait(i);
      const buffer_access it = std::move(chunks[i]);
      const outcome put(next::pwrite(file, it.data(), r.size_of(i), r.begin_of(i)));
      if (put.count <= 0) return put.error;
      done += static_cast<std::size_t>(put.count);
      if (static_cast<std::size_t>(put.count) < r.size_of(i)) return 0;
    }
    return 0;
  });
}

}  // namespace hpe::interpose
