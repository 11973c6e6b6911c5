// read, write and their families. Calls with ordinary memory are passed on unchanged. If the buffer is hpe memory, the
// functions of large_files.h transfer the bytes if they can. Otherwise hpe stages the buffer, or its first part if a
// stream transfers no more at once (streams.h), and makes a single call, because several calls would behave differently
// (several messages, several positions at the end of a file, several waits).

#undef _FORTIFY_SOURCE

#include "interpose/io/large_files.h"
#include "interpose/io/next.h"
#include "interpose/io/staged_call.h"
#include "interpose/io/streams.h"

namespace {

using namespace hpe::interpose;  // NOLINT(google-build-using-namespace): this file is part of that namespace

using bytes_of = std::size_t;

bytes_of entries(int count) noexcept { return static_cast<bytes_of>(std::max(count, 0)); }

bool ordinary_vector(const iovec* vector, int count) noexcept {
  return count <= 0 || ordinary(vector, static_cast<bytes_of>(count));
}

}  // namespace

// ---- at the file position

HPE_INTERPOSE ssize_t read(int file, void* p, bytes_of n) {
  if (n == 0 || ordinary(p)) return passed([&] { return next::read(file, p, n); }, "read", p, n);
  if (const auto done = large_read("read", file, p, n)) return *done;
  return with_buffer(
      "read", host_use::write, p, most_of_stream(file, n, host_use::write),
      [&](void* q, bytes_of m) { return next::read(file, q, m); },
      [&](const iovec* v, int count) { return next::readv(file, v, count); });
}

HPE_INTERPOSE ssize_t write(int file, const void* p, bytes_of n) {
  if (n == 0 || ordinary(p)) return passed([&] { return next::write(file, p, n); }, "write", p, n);
  if (const auto done = large_write("write", file, p, n)) return *done;
  return with_buffer(
      "write", host_use::read, p, most_of_stream(file, n, host_use::read),
      [&](void* q, bytes_of m) { return next::write(file, q, m); },
      [&](const iovec* v, int count) { return next::writev(file, v, count); });
}

HPE_INTERPOSE ssize_t readv(int file, const iovec* vector, int count) {
  if (ordinary_vector(vector, count))
    return passed_vector([&] { return next::readv(file, vector, count); }, host_use::write, vector, entries(count));
  if (count == 1) return ::read(file, vector->iov_base, vector->iov_len);
  return with_vector(
      "readv", host_use::write, vector, count, [&](const iovec* v, int n) { return next::readv(file, v, n); },
      most_of_stream(file, bytes_of_vector(vector, count), host_use::write));
}

HPE_INTERPOSE ssize_t writev(int file, const iovec* vector, int count) {
  if (ordinary_vector(vector, count))
    return passed_vector([&] { return next::writev(file, vector, count); }, host_use::read, vector, entries(count));
  if (count == 1) return ::write(file, vector->iov_base, vector->iov_len);
  return with_vector(
      "writev", host_use::read, vector, count, [&](const iovec* v, int n) { return next::writev(file, v, n); },
      most_of_stream(file, bytes_of_vector(vector, count), host_use::read));
}

HPE_INTERPOSE ssize_t __read(int file, void* p, bytes_of n) { return ::read(file, p, n); }

HPE_INTERPOSE ssize_t __write(int file, const void* p, bytes_of n) { return ::write(file, p, n); }

// If n is too large, calls libc's function, which ends the program.
HPE_INTERPOSE ssize_t __read_chk(int file, void* p, bytes_of n, bytes_of room) {
  return n > room ? next::__read_chk(file, p, n, room) : ::read(file, p, n);
}

// ---- at an offset

HPE_INTERPOSE ssize_t pread(int file, void* p, bytes_of n, off_t offset) {
  if (n == 0 || ordinary(p)) return passed([&] { return next::pread(file, p, n, offset); }, "pread", p, n);
  if (const auto done = large_read("pread", file, p, n, offset)) return *done;
  return with_buffer(
      "pread", host_use::write, p, n, [&](void* q, bytes_of m) { return next::pread(file, q, m, offset); },
      [&](const iovec* v, int count) { return next::preadv(file, v, count, offset); });
}

HPE_INTERPOSE ssize_t pwrite(int file, const void* p, bytes_of n, off_t offset) {
  if (n == 0 || ordinary(p)) return passed([&] { return next::pwrite(file, p, n, offset); }, "pwrite", p, n);
  if (const auto done = large_write("pwrite", file, p, n, offset)) return *done;
  return with_buffer(
      "pwrite", host_use::read, p, n, [&](void* q, bytes_of m) { return next::pwrite(file, q, m, offset); },
      [&](const iovec* v, int count) { return next::pwritev(file, v, count, offset); });
}

HPE_INTERPOSE ssize_t preadv2(int file, const iovec* vector, int count, off_t offset, int flags) {
  if (ordinary_vector(vector, count))
    return passed_vector([&] { return next::preadv2(file, vector, count, offset, flags); }, host_use::write, vector,
                         entries(count));
  if (count == 1 && flags == 0 && offset >= 0) return ::pread(file, vector->iov_base, vector->iov_len, offset);
  return with_vector("preadv2", host_use::write, vector, count,
                     [&](const iovec* v, int n) { return next::preadv2(file, v, n, offset, flags); });
}

HPE_INTERPOSE ssize_t pwritev2(int file, const iovec* vector, int count, off_t offset, int flags) {
  if (ordinary_vector(vector, count))
    return passed_vector([&] { return next::pwritev2(file, vector, count, offset, flags); }, host_use::read, vector,
                         entries(count));
  if (count == 1 && flags == 0 && offset >= 0) return ::pwrite(file, vector->iov_base, vector->iov_len, offset);
  return with_vector("pwritev2", host_use::read, vector, count,
                     [&](const iovec* v, int n) { return next::pwritev2(file, v, n, offset, flags); });
}

HPE_INTERPOSE ssize_t preadv(int file, const iovec* vector, int count, off_t offset) {
  if (ordinary_vector(vector, count))
    return passed_vector([&] { return next::preadv(file, vector, count, offset); }, host_use::write, vector,
                         entries(count));
  if (count == 1) return ::pread(file, vector->iov_base, vector->iov_len, offset);
  return with_vector("preadv", host_use::write, vector, count,
                     [&](const iovec* v, int n) { return next::preadv(file, v, n, offset); });
}

HPE_INTERPOSE ssize_t pwritev(int file, const iovec* vector, int count, off_t offset) {
  if (ordinary_vector(vector, count))
    return passed_vector([&] { return next::pwritev(file, vector, count, offset); }, host_use::read, vector,
                         entries(count));
  if (count == 1) return ::pwrite(file, vector->iov_base, vector->iov_len, offset);
  return with_vector("pwritev", host_use::read, vector, count,
                     [&](const iovec* v, int n) { return next::pwritev(file, v, n, offset); });
}

// On 64-bit machines these are other names of the same functions.

HPE_INTERPOSE ssize_t pread64(int file, void* p, bytes_of n, off64_t offset) { return ::pread(file, p, n, offset); }

HPE_INTERPOSE ssize_t __pread64(int file, void* p, bytes_of n, off64_t offset) { return ::pread(file, p, n, offset); }

HPE_INTERPOSE ssize_t __pread_chk(int file, void* p, bytes_of n, off_t offset, bytes_of room) {
  return n > room ? next::__pread_chk(file, p, n, offset, room) : ::pread(file, p, n, offset);
}

HPE_INTERPOSE ssize_t __pread64_chk(int file, void* p, bytes_of n, off64_t offset, bytes_of room) {
  return n > room ? next::__pread64_chk(file, p, n, offset, room) : ::pread(file, p, n, offset);
}

HPE_INTERPOSE ssize_t pwrite64(int file, const void* p, bytes_of n, off64_t offset) {
  return ::pwrite(file, p, n, offset);
}

HPE_INTERPOSE ssize_t __pwrite64(int file, const void* p, bytes_of n, off64_t offset) {
  return ::pwrite(file, p, n, offset);
}

HPE_INTERPOSE ssize_t preadv64(int file, const iovec* vector, int count, off64_t offset) {
  return ::preadv(file, vector, count, offset);
}

HPE_INTERPOSE ssize_t pwritev64(int file, const iovec* vector, int count, off64_t offset) {
  return ::pwritev(file, vector, count, offset);
}

HPE_INTERPOSE ssize_t preadv64v2(int file, const iovec* vector, int count, off64_t offset, int flags) {
  return ::preadv2(file, vector, count, offset, flags);
}

HPE_INTERPOSE ssize_t pwritev64v2(int file, const iovec* vector, int count, off64_t offset, int flags) {
  return ::pwritev2(file, vector, count, offset, flags);
}
