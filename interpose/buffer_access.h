#pragma once

/// A range of memory that host code, which knows nothing of hpe, is about to use. This is the only way in which
/// interposed functions get at memory of hpe, and at device memory that a CUDA program got from the driver itself
/// (adopted_pointers.h), which is always used through a copy; runtime/core/operations/host_access.h tells how reading
/// and writing are kept apart from what kernels and the host do with neighbouring bytes.
///
///   buffer_access to(buffer, size, host_use::write);
///   const ssize_t n = next_read(file, to.data(), size);
///   if (n > 0) to.written(0, n);
///
/// The rules are those of the interposed functions: while the object lives nobody else writes the range, and nobody
/// else uses it at all if it is for writing. Other bytes of the same allocation, even in the same block, may be used by
/// anybody in any way.

#include <cstddef>
#include <memory>
#include <vector>

#include "interpose/adopted_pointers.h"
#include "runtime/core/operations/host_access.h"

namespace hpe::interpose {

using core::host_piece;
using core::host_use;

/// Movable. One thread at a time. Everything throws hpe::error, and then nothing of the range has changed, except by
/// earlier calls.
class buffer_access {
 public:
  /// Whether an address is nothing but ordinary memory. Costs a few instructions; may be asked in signal handlers.
  [[nodiscard]] static bool ordinary(const void* p) noexcept { return ordinary(reinterpret_cast<std::uintptr_t>(p)); }
  [[nodiscard]] static bool ordinary(std::uintptr_t p) noexcept {
    return core::host_access::of(p) == nullptr && adopted_pointers::of(p) == nullptr;
  }
  /// Whether all memory is ordinary as yet.
  [[nodiscard]] static bool all_ordinary() noexcept {
    return !core::host_access::in_use() && !adopted_pointers::exist();
  }

  /// No bytes.
  buffer_access() noexcept = default;

  /// Ordinary memory passes through for the price of a look-up. For use read and read_write, the bytes are at data()
  /// when the constructor returns; it waits for the kernels that write them. For use write, what is at data() is
  /// undefined. `again` says that refresh() is called before each use: data() then stays what it is, and has no bytes
  /// before.
  buffer_access(const void* address, std::size_t bytes, host_use use, bool again = false)
      : buffer_access(address, bytes, use, again, {{0, bytes}}) {}
  /// The same where host code reads only some pieces of the range.
  buffer_access(const void* address, std::size_t bytes, host_use use, bool again, std::vector<host_piece> pieces);
  /// Likewise rows of adopted memory.
  buffer_access(adopted_pointers& behind, const void* address, host_use use, bool again, const copied_rows& shape);

  /// For use read without waiting for copies: the bytes are at data() after wait_ready(), which does not wait once
  /// ready() says so. Kernels that write the range are waited for.
  [[nodiscard]] static buffer_access started(const void* address, std::size_t bytes);
  [[nodiscard]] bool ready() const;
  void wait_ready();

  buffer_access(buffer_access&&) noexcept = default;
  buffer_access& operator=(buffer_access&&) noexcept = default;

  /// Where host code reads or writes the bytes. Its remainder modulo 4096 is that of the address.
  [[nodiscard]] void* data() const noexcept { return data_; }

  /// Whether address is memory of hpe, or adopted.
  [[nodiscard]] bool staged() const noexcept { return access_ != nullptr || adopted_ != nullptr; }

  /// Whether host code uses the memory itself and no copy: written() then does nothing.
  [[nodiscard]] bool in_place() const noexcept { return copy_.data() == nullptr && own_ == nullptr; }

  /// Before host code uses it once more: waits, and copies the bytes again if they are read.
  void refresh();

  /// Host code has written these bytes; kernels launched and accesses made from now on see them. What was written
  /// without this call may be lost.
  void written(std::size_t offset, std::size_t bytes);
  void written() { written(0, bytes_); }
  void written(std::span<const copied_piece> pieces);

  /// Before host code changes again what it said was written: waits until that is in place.
  void settle();
  /// Whether settle() would return at once.
  [[nodiscard]] bool settled() const;

 private:
  // Memory that was borrowed for a copy.
  struct return_memory {
    adopted_pointers* to;
    std::size_t bytes;
    void operator()(std::byte* memory) const noexcept { to->give_back(memory, bytes); }
  };

  void use_adopted(adopted_pointers& behind, bool read_now);
  void read_adopted();

  core::host_access* access_ = nullptr;
  std::byte* address_ = nullptr;
  std::size_t bytes_ = 0;
  host_use use_ = host_use::read;
  std::vector<host_piece> pieces_;
  std::vector<copied_piece> adopted_pieces_;  // instead, of adopted memory
  std::byte* data_ = nullptr;
  core::loan copy_;  // none: used in place, or adopted
  adopted_pointers* adopted_ = nullptr;
  std::unique_ptr<std::byte, return_memory> own_{nullptr, {nullptr, 0}};  // of adopted memory
  std::vector<timepoint> copying_;                                        // after started()
};

}  // namespace hpe::interpose
