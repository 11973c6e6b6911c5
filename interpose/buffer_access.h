#pragma once

/// Lets host code that does not know hpe use a range of memory. Interposed functions access hpe memory only through
/// this class, and also device memory that a CUDA program allocated through the driver (adopted_pointers.h), which is
/// always copied. runtime/core/operations/host_access.h explains why these reads and writes do not disturb kernels and
/// host code that use neighbouring bytes.
///
///   buffer_access to(buffer, size, host_use::write);
///   const ssize_t n = next_read(file, to.data(), size);
///   if (n > 0) to.written(0, n);
///
/// While the object exists, no other code may write to the range; if the use includes writing, no other code may use
/// the range at all. The interposed functions make the same demands on the program. Other code may use all other bytes
/// of the allocation, even those in the same block.

#include <cstddef>
#include <memory>
#include <vector>

#include "interpose/adopted_pointers.h"
#include "runtime/core/operations/host_access.h"

namespace hpe::interpose {

using core::host_piece;
using core::host_use;

/// Movable. Only one thread may use an object at a time. Functions may throw hpe::error; then the call has not changed
/// the range.
class buffer_access {
 public:
  /// Whether an address is neither hpe memory nor adopted memory. Costs a few instructions and may be called in signal
  /// handlers.
  [[nodiscard]] static bool ordinary(const void* p) noexcept { return ordinary(reinterpret_cast<std::uintptr_t>(p)); }
  [[nodiscard]] static bool ordinary(std::uintptr_t p) noexcept {
    return core::host_access::of(p) == nullptr && adopted_pointers::of(p) == nullptr;
  }
  /// Whether the process has had only ordinary memory so far.
  [[nodiscard]] static bool all_ordinary() noexcept {
    return !core::host_access::in_use() && !adopted_pointers::exist();
  }

  /// An empty range.
  buffer_access() noexcept = default;

  /// Ordinary memory is used in place, at the cost of a lookup. For the uses read and read_write, the constructor waits
  /// for kernels that write the bytes, and makes the bytes available at data(). For the use write, the bytes at data()
  /// are undefined. again: the caller calls refresh() before each use, and only then are the bytes at data(); the
  /// address data() does not change.
  buffer_access(const void* address, std::size_t bytes, host_use use, bool again = false)
      : buffer_access(address, bytes, use, again, {{0, bytes}}) {}
  /// Like the constructor above, for host code that reads only these pieces of the range.
  buffer_access(const void* address, std::size_t bytes, host_use use, bool again, std::vector<host_piece> pieces);
  /// Like the constructors above, for a box in adopted memory.
  buffer_access(adopted_pointers& behind, const void* address, host_use use, bool again, const box& shape);

  /// For the use read: makes the object and begins its copies, but does not wait for the copies. The bytes are at
  /// data() after wait_ready(), which does not wait if ready() is true. First waits for kernels that write the range.
  [[nodiscard]] static buffer_access started(const void* address, std::size_t bytes);
  [[nodiscard]] bool ready() const;
  void wait_ready();

  buffer_access(buffer_access&&) noexcept = default;
  buffer_access& operator=(buffer_access&&) noexcept = default;

  /// The address at which host code reads or writes the bytes; it has the same offset in its page as the original
  /// address.
  [[nodiscard]] void* data() const noexcept { return data_; }

  /// Whether the range is hpe memory or adopted memory.
  [[nodiscard]] bool staged() const noexcept { return access_ != nullptr || adopted_ != nullptr; }

  /// Whether host code uses the memory itself and not a copy; then written() has no effect.
  [[nodiscard]] bool in_place() const noexcept { return copy_.data() == nullptr && own_ == nullptr; }

  /// To be called before host code uses the range again: waits and, if the use includes reading, copies the bytes
  /// again.
  void refresh();

  /// To be called when host code has written these bytes at data(). Kernels and accesses after this call see the new
  /// bytes. Without this call, the bytes may be lost.
  void written(std::size_t offset, std::size_t bytes);
  void written() { written(0, bytes_); }
  void written(std::span<const placed_box> boxes);

  /// To be called after written(), before host code changes bytes at data() again: waits until the earlier bytes have
  /// been copied to the range.
  void settle();
  /// Whether settle() would return at once.
  [[nodiscard]] bool settled() const;
  /// Like written(), but does not wait for a copy to adopted memory: the bytes have arrived there when settled()
  /// returns true.
  void start_written();
  [[nodiscard]] bool adopted() const noexcept { return adopted_ != nullptr; }

 private:
  // Returns the memory of a copy to the object that lent it.
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
  std::vector<placed_box> adopted_pieces_;  // used instead of pieces_ for adopted memory
  std::byte* data_ = nullptr;
  core::loan copy_;  // empty if the range is used in place or is adopted memory
  adopted_pointers* adopted_ = nullptr;
  std::unique_ptr<std::byte, return_memory> own_{nullptr, {nullptr, 0}};  // the copy of adopted memory
  std::vector<timepoint> copying_;                                        // the queued copies of hpe memory
  device_copy moving_;                                                    // the queued copy from or to adopted memory
};

}  // namespace hpe::interpose
