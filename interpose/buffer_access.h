#pragma once

/// Lets CPU code that does not know hpe, such as libc, use a range of memory of any kind. Interposed functions use this
/// class for hpe memory and adopted memory (adopted_pointers.h). Adopted memory is always copied.
/// runtime/core/operations/host_access.h explains why these reads and writes do not disturb kernels and host code that
/// use neighbouring bytes.
///
///   buffer_access to(buffer, size, host_use::write);
///   const ssize_t n = next_read(file, to.data(), size);
///   if (n > 0) to.written(0, n);
///
/// While the object exists, no other code may write to the range; if the use includes writing, no other code may use
/// the range at all. POSIX and MPI demand the same of the program during a call. Other code may use all other bytes of
/// the allocation, even those in the same block.

#include <cstddef>
#include <memory>
#include <vector>

#include "interpose/adopted_pointers.h"
#include "runtime/core/operations/host_access.h"

namespace hpe::interpose {

using core::host_run;
using core::host_use;

/// Movable. Only one thread may use an object at a time. Functions may throw hpe::error; a call that throws has not
/// changed the range.
class buffer_access {
 public:
  /// Whether an address is neither hpe memory nor adopted memory. Costs a few instructions; in CUDA programs, also a
  /// system call (adopted_pointers::of). May be called in signal handlers.
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

  /// CPU code uses ordinary memory in place; for this memory, the constructor costs only a lookup. For the uses read
  /// and read_write, the constructor waits for kernels that write the bytes, and makes the bytes available at data().
  /// For the use write, the bytes at data() are undefined. If `again` is true, the caller must call refresh() before
  /// each use: the bytes are at data() only after this call. The address data() does not change.
  buffer_access(const void* address, std::size_t bytes, host_use use, bool again = false)
      : buffer_access(address, bytes, use, again, {{0, bytes}}) {}
  /// Like the constructor above, for CPU code that reads only these runs of the range.
  buffer_access(const void* address, std::size_t bytes, host_use use, bool again, std::vector<host_run> runs);
  /// Like the constructors above, for a box in adopted memory, which `behind` accesses.
  buffer_access(adopted_pointers& behind, const void* address, host_use use, bool again, const box& shape);

  /// Returns an object for the use read, and starts the copies of the bytes without waiting for them; the copies run
  /// after the kernels that write the range. The bytes are at data() after wait_ready(), which returns at once if
  /// ready() is true.
  [[nodiscard]] static buffer_access started(const void* address, std::size_t bytes);
  [[nodiscard]] bool ready() const;
  void wait_ready();

  buffer_access(buffer_access&&) noexcept = default;
  buffer_access& operator=(buffer_access&&) noexcept = default;

  /// The address at which CPU code reads or writes the bytes. This address and the original address have the same
  /// offset in their pages.
  [[nodiscard]] void* data() const noexcept { return data_; }

  /// Whether the range is hpe memory or adopted memory.
  [[nodiscard]] bool staged() const noexcept { return access_ != nullptr || adopted_ != nullptr; }

  /// Whether CPU code uses the memory itself and not a copy. In this case, written() has no effect.
  [[nodiscard]] bool in_place() const noexcept { return copy_.data() == nullptr && own_ == nullptr; }

  /// To be called before CPU code uses the range again. Waits for kernels that use the bytes and, if the use includes
  /// reading, copies the bytes to data().
  void refresh();

  /// To be called when CPU code has written these bytes at data(). Kernels and accesses after this call see the new
  /// bytes. Without this call, the new bytes may be lost.
  void written(std::size_t offset, std::size_t bytes);
  void written() { written(0, bytes_); }
  void written(std::span<const placed_box> boxes);

  /// To be called after written(), before CPU code changes bytes at data() again: waits until the earlier bytes have
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
  std::vector<host_run> runs_;
  std::vector<placed_box> adopted_runs_;  // used instead of runs_ for adopted memory
  std::byte* data_ = nullptr;
  core::loan copy_;  // empty if the range is used in place or is adopted memory
  adopted_pointers* adopted_ = nullptr;
  std::unique_ptr<std::byte, return_memory> own_{nullptr, {nullptr, 0}};  // the copy of adopted memory
  std::vector<timepoint> copying_;                                        // the queued copies of hpe memory
  device_copy moving_;                                                    // the queued copy from or to adopted memory
};

}  // namespace hpe::interpose
