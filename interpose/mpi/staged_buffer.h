#pragma once

#include <cstdint>
#include <memory>

#include "interpose/buffer_access.h"
#include "interpose/mpi/layout.h"
#include "interpose/mpi/left_memory.h"

namespace hpe::interpose::mpi {

/// Whether a buffer argument may refer to hpe memory, or to device memory that the program has allocated through CUDA
/// and that hpe does not leave to the MPI library. A null pointer is MPI_BOTTOM, with which the datatype contains the
/// addresses; so after hpe has started, a null pointer may refer to hpe memory, too.
[[nodiscard]] inline bool concerns(const void* buffer) noexcept {
  if (buffer == nullptr) return core::host_access::meets(buffer, SIZE_MAX);
  return !buffer_access::ordinary(buffer) && !left_memory::has(buffer);
}
/// The same, for an operation that outlives its call: a request or a window.
[[nodiscard]] inline bool concerns_operation(const void* buffer) noexcept {
  if (buffer == nullptr) return concerns(buffer);
  return !buffer_access::ordinary(buffer) && !left_memory::has_for_operation(buffer);
}

/// A buffer argument in hpe memory or device memory, and the buffer that replaces it in the call of MPI.
class staged_buffer {
 public:
  /// `given`: the program's buffer argument. `again`: the buffer is used several times, and the caller calls refresh()
  /// before each use (buffer_access). Throws hpe::error if the bytes are not all in one allocation, or if `given` is
  /// MPI_BOTTOM and a byte is in hpe memory.
  staged_buffer(const void* given, layout which, host_use use, bool again);
  /// For a buffer that cannot be used, in a call in which other ranks take part: allocates memory that replaces the
  /// buffer. The memory contains zeros, and hpe discards the bytes that MPI writes to it. Throws std::bad_alloc.
  explicit staged_buffer(layout which);

  /// Returns the address to pass to MPI in place of the program's address.
  [[nodiscard]] void* pointer() const noexcept { return pointer_; }
  [[nodiscard]] bool staged() const noexcept { return access_.staged(); }
  /// Returns the number of data bytes, without gaps.
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }
  [[nodiscard]] bool is_written() const noexcept { return use_ != host_use::read; }

  void refresh() { access_.refresh(); }

  /// To the program's buffer, copies the first `bytes` bytes of data, or all data, from the buffer that MPI has
  /// written. Does nothing if MPI only reads the buffer.
  void written(std::size_t bytes);
  void written() { written(bytes_.size()); }

 private:
  layout bytes_;
  host_use use_;
  buffer_access access_;
  std::unique_ptr<std::byte[]> stand_in_;
  void* pointer_;
};

}  // namespace hpe::interpose::mpi
