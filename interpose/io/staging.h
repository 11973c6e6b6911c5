#pragma once

/// The buffers of one call as the kernel can use them.

#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <vector>

#include "hpe/error.hpp"
#include "interpose/buffer_access.h"

namespace hpe::interpose {

/// Whether a buffer is nothing to hpe. Costs a few instructions; may be asked in signal handlers.
[[nodiscard]] inline bool ordinary(const void* p) noexcept {
  asm("" : "+r"(p));  // what it points to is not looked at; GCC would warn of buffers that are yet to be filled
  return buffer_access::ordinary(p);
}

/// The same for a vector. Entries are read only in a process that uses hpe; a vector that no call can take is ordinary.
[[nodiscard]] bool ordinary(const iovec* vector, std::size_t count) noexcept;

/// What a system call came to.
struct outcome {
  ssize_t count;
  int error;  ///< if count is negative

  explicit outcome(ssize_t result) noexcept : count(result), error(result < 0 ? errno : 0) {}
};

/// Gathers the buffers of a call in order. What lies in memory of hpe is staged. Where a buffer leaves its allocation,
/// the list ends with a place that no process has, so that the kernel finds out by itself how far it gets: the outcome
/// is what it is for a buffer that leaves any other mapping.
class staging {
 public:
  explicit staging(host_use use) noexcept : use_(use) {}

  /// Throws hpe::error.
  void add(const void* address, std::size_t bytes);
  void add(const iovec* vector, std::size_t count);

  [[nodiscard]] const std::vector<iovec>& list() const noexcept { return list_; }
  [[nodiscard]] bool single() const noexcept { return list_.size() == 1; }

  /// The kernel has written the first `bytes` bytes of the list.
  void written(std::size_t bytes);

  /// The call is made: puts in place what the kernel wrote, and tells the log why it found an address bad.
  outcome finish(const char* call, outcome result);

 private:
  const host_use use_;
  iovec leaving_{};  // the buffer that leaves its allocation
  std::vector<iovec> list_;
  std::vector<buffer_access> accesses_;  // of each entry but the place that no process has
};

/// How many bytes from p on belong to its allocation, at most `bytes`.
[[nodiscard]] std::size_t allocated(const void* p, std::size_t bytes) noexcept;

/// The errno that a program gets for a failure of hpe. Tells the log what happened.
[[nodiscard]] int error_number(const char* call, const error& failure) noexcept;

/// For a call that failed: if it was for a bad address, tells the log why memory of hpe was one. Leaves errno alone.
void explain(const char* call, const void* p, std::size_t bytes) noexcept;

}  // namespace hpe::interpose
