#pragma once

#include <cstdint>
#include <memory>

#include "interpose/buffer_access.h"
#include "interpose/mpi/layout.h"

namespace hpe::interpose::mpi {

/// Whether a buffer argument may name memory of hpe, or device memory that the program got from CUDA. A null pointer
/// may, once hpe has started: it is MPI_BOTTOM, and the datatype has the addresses.
[[nodiscard]] inline bool concerns(const void* buffer) noexcept {
  if (buffer == nullptr) return core::host_access::meets(buffer, SIZE_MAX);
  return !buffer_access::ordinary(buffer);
}

/// One buffer argument in memory of hpe, and the buffer that replaces it in the call to MPI.
class staged_buffer {
 public:
  /// `again`: the caller calls refresh() before each use; see buffer_access. Throws hpe::error if the bytes are not all
  /// of one allocation, and for MPI_BOTTOM if the bytes reach memory of hpe.
  staged_buffer(const void* given, layout which, host_use use, bool again);
  /// Memory that stands in for a buffer that cannot be used, so that MPI can carry out a call that other ranks take
  /// part in. It reads as zeros, and nothing that MPI writes there is put in place. Throws std::bad_alloc.
  explicit staged_buffer(layout which);

  /// The address that MPI gets in place of the program's address.
  [[nodiscard]] void* pointer() const noexcept { return pointer_; }
  [[nodiscard]] bool staged() const noexcept { return access_.staged(); }
  /// The number of data bytes, without gaps.
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }
  [[nodiscard]] bool is_written() const noexcept { return use_ != host_use::read; }

  void refresh() { access_.refresh(); }

  /// MPI has written the first `bytes` bytes of data, or all data.
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
