#pragma once

/// The buffers of one call, in a form that the kernel can use.

#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hpe/error.hpp"
#include "interpose/buffer_access.h"

namespace hpe::interpose {

/// Whether a buffer lies in ordinary memory. Costs a few instructions and is safe in signal handlers.
[[nodiscard]] inline bool ordinary(const void* p) noexcept {
  asm("" : "+r"(p));  // hides the pointer from GCC, which would warn of uninitialized buffers
  return buffer_access::ordinary(p);
}

/// Whether all buffers of a vector are ordinary. Reads the entries only in a process that uses hpe. A vector that the
/// kernel would reject counts as ordinary.
[[nodiscard]] bool ordinary(const iovec* vector, std::size_t count) noexcept;

/// The result of a system call with its errno.
struct outcome {
  ssize_t count;
  int error;  ///< if count is negative

  explicit outcome(ssize_t result) noexcept : count(result), error(result < 0 ? errno : 0) {}
};

/// Gathers the buffers of a call in order; buffers in memory of hpe are staged. If a buffer leaves its allocation, the
/// list ends with an address that no process has mapped, so the kernel returns what it returns for a buffer that leaves
/// any other mapping.
class staging {
 public:
  explicit staging(host_use use) noexcept : use_(use) {}

  /// Throws hpe::error.
  void add(const void* address, std::size_t bytes);
  /// Adds the first `most` bytes of a vector.
  void add(const iovec* vector, std::size_t count, std::size_t most = SIZE_MAX);

  [[nodiscard]] const std::vector<iovec>& list() const noexcept { return list_; }
  [[nodiscard]] bool single() const noexcept { return list_.size() == 1; }

  /// To be called when the kernel has written the first `bytes` bytes of the list: puts them in place.
  void written(std::size_t bytes);

  /// To be called after the call: puts in place what the kernel wrote. If an address was bad, logs the reason.
  outcome finish(const char* call, outcome result);

 private:
  const host_use use_;
  iovec leaving_{};  // the buffer that leaves its allocation
  std::vector<iovec> list_;
  std::vector<buffer_access> accesses_;  // of each entry, except the unmapped address
};

/// The number of bytes that a vector names; SIZE_MAX if it is larger than that.
[[nodiscard]] std::size_t bytes_of_vector(const iovec* vector, std::size_t count) noexcept;

/// The bytes from p on that belong to its allocation, at most `bytes`.
[[nodiscard]] std::size_t allocated(const void* p, std::size_t bytes) noexcept;

/// The errno for a failure of hpe, whose message it logs.
[[nodiscard]] int error_number(const char* call, const error& failure) noexcept;

/// For a call that failed: if errno is EFAULT, logs why hpe's memory at p was a bad address. Does not change errno.
void explain(const char* call, const void* p, std::size_t bytes) noexcept;

}  // namespace hpe::interpose
