#pragma once

/// A range of memory that host code without knowledge of hpe is about to use. Interposed functions access memory of hpe
/// only by this class, and likewise device memory that a CUDA program got from the driver (adopted_pointers.h), which
/// is always copied. runtime/core/operations/host_access.h explains how these reads and writes are kept apart from
/// those of kernels and the host to neighbouring bytes.
///
///   buffer_access to(buffer, size, host_use::write);
///   const ssize_t n = next_read(file, to.data(), size);
///   if (n > 0) to.written(0, n);
///
/// The rules are those of the interposed functions: while the object exists, no other code writes the range, and no
/// other code uses it at all if the object is for writing. All other bytes of the allocation, even in the same block,
/// may be used freely.

#include <cstddef>
#include <memory>
#include <vector>

#include "interpose/adopted_pointers.h"
#include "runtime/core/operations/host_access.h"

namespace hpe::interpose {

using core::host_piece;
using core::host_use;

/// Movable. For one thread at a time. Functions may throw hpe::error; then nothing in the range has changed, except by
/// earlier calls.
class buffer_access {
 public:
  /// Whether an address is ordinary memory. Costs a few instructions and is safe in signal handlers.
  [[nodiscard]] static bool ordinary(const void* p) noexcept { return ordinary(reinterpret_cast<std::uintptr_t>(p)); }
  [[nodiscard]] static bool ordinary(std::uintptr_t p) noexcept {
    return core::host_access::of(p) == nullptr && adopted_pointers::of(p) == nullptr;
  }
  /// Whether the process has only ordinary memory so far.
  [[nodiscard]] static bool all_ordinary() noexcept {
    return !core::host_access::in_use() && !adopted_pointers::exist();
  }

  /// An empty range.
  buffer_access() noexcept = default;

  /// Ordinary memory is used in place, for the price of a lookup. For use read and read_write, the constructor waits
  /// for kernels that write the bytes and puts them at data(). For use write, the content at data() is undefined.
  /// `again` means that refresh() is called before each use: only then are the bytes at data(), whose address stays the
  /// same.
  buffer_access(const void* address, std::size_t bytes, host_use use, bool again = false)
      : buffer_access(address, bytes, use, again, {{0, bytes}}) {}
  /// Host code reads only these pieces of the range.
  buffer_access(const void* address, std::size_t bytes, host_use use, bool again, std::vector<host_piece> pieces);
  /// For rows of adopted memory.
  buffer_access(adopted_pointers& behind, const void* address, host_use use, bool again, const copied_rows& shape);

  /// For use read, without waiting for copies: the bytes are at data() after wait_ready(), which does not wait if
  /// ready() is true. Waits for kernels that write the range.
  [[nodiscard]] static buffer_access started(const void* address, std::size_t bytes);
  [[nodiscard]] bool ready() const;
  void wait_ready();

  buffer_access(buffer_access&&) noexcept = default;
  buffer_access& operator=(buffer_access&&) noexcept = default;

  /// The address at which host code reads or writes the bytes; equal to the original address modulo 4096.
  [[nodiscard]] void* data() const noexcept { return data_; }

  /// Whether the range is memory of hpe or adopted memory.
  [[nodiscard]] bool staged() const noexcept { return access_ != nullptr || adopted_ != nullptr; }

  /// Whether host code uses the memory itself instead of a copy: written() then does nothing.
  [[nodiscard]] bool in_place() const noexcept { return copy_.data() == nullptr && own_ == nullptr; }

  /// To be called before host code uses the range again: waits and, if the range is read, copies the bytes again.
  void refresh();

  /// To be called when host code has written these bytes: kernels and accesses after this call see them. Without it
  /// they may be lost.
  void written(std::size_t offset, std::size_t bytes);
  void written() { written(0, bytes_); }
  void written(std::span<const copied_piece> pieces);

  /// To be called before host code changes bytes again after written(): waits until the earlier bytes are in place.
  void settle();
  /// Whether settle() would return at once.
  [[nodiscard]] bool settled() const;
  /// As written(); the bytes of adopted memory are in place only once settled() returns true.
  void start_written();
  [[nodiscard]] bool adopted() const noexcept { return adopted_ != nullptr; }

 private:
  // Returns a copy's memory to its lender.
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
  std::vector<copied_piece> adopted_pieces_;  // used instead of pieces_ for adopted memory
  std::byte* data_ = nullptr;
  core::loan copy_;  // empty if the range is used in place or adopted
  adopted_pointers* adopted_ = nullptr;
  std::unique_ptr<std::byte, return_memory> own_{nullptr, {nullptr, 0}};  // the copy of adopted memory
  std::vector<timepoint> copying_;                                        // set by started()
  device_copy moving_;  // the same for adopted memory, and the copy that start_written() began
};

}  // namespace hpe::interpose
