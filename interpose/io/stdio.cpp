// The functions of stdio.h that pass the program's pointer to the operating system if the size is large. The other
// functions of stdio.h copy between the stream's buffer and the program's memory on the CPU, with page faults if the
// memory is hpe memory (see calls.def).
//
// These functions lock the stream, except those named _unlocked, and call libc's function for one chunk of the data
// after another. So buffering, the stream's indicators and the order of bytes are as in libc. While libc writes one
// chunk, hpe copies the next chunk from the device; while libc reads one chunk, hpe copies the previous chunk to the
// device.

#undef _FORTIFY_SOURCE

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>

#include "interpose/io/large_files.h"
#include "interpose/io/next.h"
#include "interpose/io/ordered_workers.h"
#include "interpose/io/staged_call.h"

namespace {

using namespace hpe::interpose;  // NOLINT(google-build-using-namespace): this file is part of that namespace

using bytes_of = std::size_t;

class locked {
 public:
  explicit locked(std::FILE* stream) : stream_(stream) { ::flockfile(stream_); }
  ~locked() { ::funlockfile(stream_); }
  locked(const locked&) = delete;
  locked& operator=(const locked&) = delete;

 private:
  std::FILE* stream_;
};

bytes_of size_of_chunk(bytes_of i, bytes_of total) { return std::min(file_chunk_size, total - i * file_chunk_size); }

bytes_of chunks_of(bytes_of total) { return (total + file_chunk_size - 1) / file_chunk_size; }

// Sets the error indicator, as libc does when a system call fails.
void set_error(std::FILE* stream) { stream->_flags |= _IO_ERR_SEEN; }

// Returns the number of bytes transferred. If hpe fails, sets the error indicator of the stream. The stream must be
// locked.
template <class Move>
bytes_of through(const char* call, std::FILE* stream, Move move) {
  bytes_of done = 0;
  const ssize_t result = staged_call(call, [&] {
    move(done);
    return outcome(0);
  });
  if (result < 0) set_error(stream);
  return done;
}

bytes_of put(const char* call, const std::byte* p, bytes_of total, std::FILE* stream) {
  const bytes_of good = allocated(p, total);
  tell_touch(p, good, host_use::read);
  int error = errno;
  const bytes_of done = through(call, stream, [&](bytes_of& sum) {
    std::vector<buffer_access> chunks(chunks_of(good));
    ordered_workers workers(chunks.size(), 3, chunks.size() > 1 ? 1 : 0, [&](bytes_of i) {
      chunks[i] = buffer_access(p + i * file_chunk_size, size_of_chunk(i, good), host_use::read);
    });
    for (bytes_of i = 0; i < chunks.size(); ++i) {
      workers.wait(i);
      const buffer_access it = std::move(chunks[i]);
      const bytes_of put = next::fwrite(it.data(), 1, size_of_chunk(i, good), stream);
      error = errno;
      sum += put;
      if (put < size_of_chunk(i, good)) return;
    }
  });
  if (done < good) {
    errno = error;
    return done;
  }
  // libc's function handles the part of the buffer beyond the end of the allocation.
  return good == total ? done : done + next::fwrite(p + good, 1, total - good, stream);
}

bytes_of get(const char* call, std::byte* p, bytes_of total, std::FILE* stream) {
  const bytes_of good = allocated(p, total);
  int error = errno;
  const bytes_of done = through(call, stream, [&](bytes_of& sum) {
    chunks_in_flight on_their_way;
    for (bytes_of i = 0; i < chunks_of(good); ++i) {
      buffer_access it(p + i * file_chunk_size, size_of_chunk(i, good), host_use::write);
      const bytes_of got = next::fread(it.data(), 1, size_of_chunk(i, good), stream);
      error = errno;
      if (got > 0) on_their_way.add(std::move(it), got);
      tell_touch(p + sum, got, host_use::write);
      sum += got;
      if (got < size_of_chunk(i, good)) return;
    }
  });
  if (done < good) {
    errno = error;
    return done;
  }
  return good == total ? done : done + next::fread(p + good, 1, total - good, stream);
}

// Makes a call of fread or fwrite that passes the program's buffer on unchanged. Returns the number of items.
template <class Call>
bytes_of passed_items(const Call& make, host_use use, const void* p, bytes_of size, bytes_of count) {
  bytes_of total = 0;
  if (hpe::watcher_of_touches() == nullptr || __builtin_mul_overflow(size, count, &total)) [[likely]]
    return make();
  open_watched(p, total);
  const bytes_of result = make();
  tell_touch(p, result * size, use);
  return result;
}

// Whether hpe, instead of libc alone, executes the call. Returns false if the total size overflows.
bool ours(const void* p, bytes_of size, bytes_of count, bytes_of& total) {
  return !ordinary(p) && !__builtin_mul_overflow(size, count, &total) && total > 0;
}

// Returns the number of whole items that libc would return.
bytes_of items(bytes_of bytes, bytes_of size, bytes_of count, bytes_of total) {
  return bytes == total ? count : bytes / size;
}

}  // namespace

HPE_INTERPOSE bytes_of fread(void* p, bytes_of size, bytes_of count, std::FILE* stream) {
  bytes_of total = 0;
  if (!ours(p, size, count, total))
    return passed_items([&] { return next::fread(p, size, count, stream); }, host_use::write, p, size, count);
  const locked during(stream);
  return items(get("fread", static_cast<std::byte*>(p), total, stream), size, count, total);
}

HPE_INTERPOSE bytes_of fread_unlocked(void* p, bytes_of size, bytes_of count, std::FILE* stream) {
  bytes_of total = 0;
  if (!ours(p, size, count, total))
    return passed_items([&] { return next::fread_unlocked(p, size, count, stream); }, host_use::write, p, size, count);
  return items(get("fread_unlocked", static_cast<std::byte*>(p), total, stream), size, count, total);
}

// If the items do not fit into the buffer, calls libc's function, which ends the program.

HPE_INTERPOSE bytes_of __fread_chk(void* p, bytes_of room, bytes_of size, bytes_of count, std::FILE* stream) {
  bytes_of total = 0;
  if (!ours(p, size, count, total) || total > room) return next::__fread_chk(p, room, size, count, stream);
  return ::fread(p, size, count, stream);
}

HPE_INTERPOSE bytes_of __fread_unlocked_chk(void* p, bytes_of room, bytes_of size, bytes_of count, std::FILE* stream) {
  bytes_of total = 0;
  if (!ours(p, size, count, total) || total > room) return next::__fread_unlocked_chk(p, room, size, count, stream);
  return ::fread_unlocked(p, size, count, stream);
}

HPE_INTERPOSE bytes_of fwrite(const void* p, bytes_of size, bytes_of count, std::FILE* stream) {
  bytes_of total = 0;
  if (!ours(p, size, count, total))
    return passed_items([&] { return next::fwrite(p, size, count, stream); }, host_use::read, p, size, count);
  const locked during(stream);
  return items(put("fwrite", static_cast<const std::byte*>(p), total, stream), size, count, total);
}

HPE_INTERPOSE bytes_of fwrite_unlocked(const void* p, bytes_of size, bytes_of count, std::FILE* stream) {
  bytes_of total = 0;
  if (!ours(p, size, count, total))
    return passed_items([&] { return next::fwrite_unlocked(p, size, count, stream); }, host_use::read, p, size, count);
  return items(put("fwrite_unlocked", static_cast<const std::byte*>(p), total, stream), size, count, total);
}

HPE_INTERPOSE int fputs(const char* text, std::FILE* stream) {
  if (ordinary(text)) return next::fputs(text, stream);
  const bytes_of length = std::strlen(text);
  return ::fwrite(text, 1, length, stream) == length ? 1 : EOF;
}

HPE_INTERPOSE int fputs_unlocked(const char* text, std::FILE* stream) {
  if (ordinary(text)) return next::fputs_unlocked(text, stream);
  const bytes_of length = std::strlen(text);
  return ::fwrite_unlocked(text, 1, length, stream) == length ? 1 : EOF;
}

HPE_INTERPOSE int puts(const char* text) {
  if (ordinary(text)) return next::puts(text);
  const bytes_of length = std::strlen(text);
  const locked during(stdout);
  if (::fwrite_unlocked(text, 1, length, stdout) != length || ::putc_unlocked('\n', stdout) == EOF) return EOF;
  return static_cast<int>(std::min<bytes_of>(INT_MAX, length + 1));
}
