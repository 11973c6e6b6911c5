#pragma once

#include <cstdint>
#include <memory>

#include "interpose/buffer_access.h"
#include "interpose/mpi/layout.h"

namespace hpe::interpose::mpi {

/// Whether a buffer argument may refer to hpe memory, or to device memory that the program allocated through CUDA.
/// After hpe has started, a null pointer may also do so: it is MPI_BOTTOM, and the datatype contains the addresses.
[[nodiscard]] inline bool concerns(const void* buffer) noexcept {
  if (buffer == nullptr) return core::host_access::meets(buffer, SIZE_MAX);
  return !buffer_access::ordinary(buffer);
}

/// A buffer argument in hpe memory, with the buffer that replaces it in the call of MPI.
class staged_buffer {
 public:
  /// `again`: the caller calls refresh() before each use; see buffer_access. Throws hpe::error if the bytes are not all
  /// in one allocation; if `given` is MPI_BOTTOM, throws hpe::error if any byte is in hpe memory.
  staged_buffer(const void* given, layout which, host_use use, bool again);
  /// Makes memory that replaces a buffer which cannot be used, so that MPI can execute a call in which other ranks take
  /// part. Its bytes are zero, and hpe discards all bytes that MPI writes to it. Throws std::bad_alloc.
  explicit staged_buffer(layout which);

  /// The address to pass to MPI in place of the program's address.
  [[nodiscard]] void* pointer() const noexcept { return pointer_; }
  [[nodiscard]] bool staged() const noexcept { return access_.staged(); }
  /// The number of data bytes; gaps do not count.
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }
  [[nodiscard]] bool is_written() const noexcept { return use_ != host_use::read; }

  void refresh() { access_.refresh(); }

  /// To be called when MPI has written the first `bytes` bytes of data, or all data.
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
