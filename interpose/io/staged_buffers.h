#pragma once

/// The buffers of one call, in a form that the operating system's kernel can use.

#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hpe/error.hpp"
#include "interpose/buffer_access.h"

namespace hpe::interpose {

/// Whether a buffer is in ordinary memory. See buffer_access::ordinary.
[[nodiscard]] inline bool ordinary(const void* p) noexcept {
  asm("" : "+r"(p));  // hides the pointer from GCC, which would otherwise warn of uninitialized buffers
  return buffer_access::ordinary(p);
}

/// Whether a vector and all its buffers are in ordinary memory. Reads the entries of the vector only in a process that
/// uses hpe. A vector that the operating system would reject counts as ordinary.
[[nodiscard]] bool ordinary(const iovec* vector, std::size_t count) noexcept;

/// The result of a system call and its errno.
struct outcome {
  ssize_t count;
  int error;  ///< valid if count is negative

  explicit outcome(ssize_t result) noexcept : count(result), error(result < 0 ? errno : 0) {}
};

/// Collects the buffers of a call in order; each buffer in hpe memory or adopted memory is replaced by a staged copy.
/// If a buffer extends beyond its allocation, the list ends with an address that is not mapped. So the Linux kernel
/// returns the same result as for any other buffer that extends beyond its mapping.
class staging {
 public:
  explicit staging(host_use use) noexcept : use_(use) {}

  /// Throws hpe::error.
  void add(const void* address, std::size_t bytes);
  /// Adds the buffers of a vector, up to `most` bytes in total.
  void add(const iovec* vector, std::size_t count, std::size_t most = SIZE_MAX);

  [[nodiscard]] const std::vector<iovec>& list() const noexcept { return list_; }
  [[nodiscard]] bool single() const noexcept { return list_.size() == 1; }

  /// To be called when the operating system has written the first `bytes` bytes of the list. Copies these bytes to the
  /// program's buffers.
  void written(std::size_t bytes);

  /// To be called after the system call. Copies the bytes that the operating system has written from the staged copies
  /// to the program's buffers. If the call has failed with EFAULT and a buffer extends beyond its allocation, logs the
  /// reason. Returns `result`.
  outcome finish(const char* call, outcome result);

 private:
  const host_use use_;
  iovec leaving_{};  // the buffer that extends beyond its allocation
  std::vector<iovec> list_;
  std::vector<buffer_access> accesses_;  // one for each entry of the list, except for the address that is not mapped
  std::vector<const void*> addresses_;   // of the accesses' memory; null for ordinary memory
};

/// Tells the watcher of touches, if there is one, that a call uses memory of the program.
void tell_touch(const void* begin, std::size_t bytes, host_use use) noexcept;
/// To be called before a call passes memory of the program on unchanged: the watcher may have closed its pages.
void open_watched(const void* begin, std::size_t bytes) noexcept;

/// The number of bytes in the buffers of a vector; SIZE_MAX if the sum is larger.
[[nodiscard]] std::size_t bytes_of_vector(const iovec* vector, std::size_t count) noexcept;

/// The number of bytes from p to the end of its allocation, at most `bytes`.
[[nodiscard]] std::size_t allocated(const void* p, std::size_t bytes) noexcept;

/// Logs the message of an hpe error and returns the corresponding errno.
[[nodiscard]] int error_number(const char* call, const error& failure) noexcept;

/// To be called after a call has failed. If errno is EFAULT and p is in hpe memory or adopted memory, logs the reason.
/// Does not change errno.
void explain(const char* call, const void* p, std::size_t bytes) noexcept;

}  // namespace hpe::interpose
