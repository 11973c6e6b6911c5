#pragma once

/// Lets host code that does not know hpe (MPI libraries, system calls) access hpe memory without using the program's
/// view. Used by interpose/buffer_access.
///
/// Reads. If the host's copy of all the bytes is valid and host memory has no limit (HPE_HOST_MEMORY), host code reads
/// it in place through the alias. The copy stays valid until these bytes are written, whatever happens to neighbouring
/// bytes. Otherwise the bytes are copied to memory that a loan_pool lends.
///
/// Writes. Host code writes to lent memory. hpe then copies exactly the written bytes to their place: to the host's
/// copy if the block is in state host, otherwise to the home, by a copy that is queued like any device work. So the old
/// bytes are never fetched, and the host and kernels may use other bytes of the same block at the same time without
/// waiting. Host memory (hpeMallocHost) has only one copy, so host code uses it in place.
///
/// Reads and writes wait only for device work and announced work on which the bytes depend.

#include <span>

#include "runtime/coherence/announcements.h"
#include "runtime/core/memory/allocator.h"
#include "runtime/core/memory/loan_pool.h"

namespace hpe::core {

/// Whether host code reads a range, writes it, or both.
enum class host_use : std::uint8_t { read = 1, write = 2, read_write = 3 };

/// A run of contiguous bytes in a range; `offset` counts from the start of the range.
struct host_run {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

/// Thread-safe. Functions throw HPE_ERROR_NOT_A_REGION for ranges that are not inside one live allocation.
class HPE_API host_access {
 public:
  host_access(const work::resources& with, const memory::uvas& space, coherence::announcements& announced,
              allocator& memory, loan_pool& loans)
      : with_(with), space_(space), announced_(announced), memory_(memory), loans_(loans) {}

  /// Returns the process's object; nullptr if the address cannot be hpe memory, because it is outside hpe's address
  /// space, or because hpe was not started in this process (for example, in a child made by fork). Costs a few
  /// instructions and does not start hpe.
  [[nodiscard]] static host_access* of(const void* p) noexcept { return of(reinterpret_cast<std::uintptr_t>(p)); }
  /// Like of(p). The address is passed as a number, so that compilers see that the bytes at the address are not read.
  [[nodiscard]] static host_access* of(std::uintptr_t address) noexcept;
  /// Whether hpe was started in this process, so that hpe memory can exist.
  [[nodiscard]] static bool in_use() noexcept;
  /// Whether an address in a child made by fork was hpe memory in the parent. The child does not have that memory.
  [[nodiscard]] static bool inherited(const void* p) noexcept;
  /// Whether a range overlaps hpe's address space.
  [[nodiscard]] static bool meets(const void* p, std::size_t bytes) noexcept;

  /// Waits for device work and returns the address at which host code may use the range in place; nullptr if host code
  /// must use a private copy.
  [[nodiscard]] std::byte* in_place(const void* p, std::size_t bytes, host_use use) const;

  /// Lends memory for a private copy of a range.
  [[nodiscard]] loan borrow(const void* p, std::size_t bytes);

  /// Copies runs of the range at p to lent memory, each run to its offset from `into`, and waits for the copies. Throws
  /// HPE_ERROR_DEVICE_LOST and other errors of copies.
  void read(std::byte* into, const void* p, std::size_t bytes, std::span<const host_run> runs) const;

  /// Begins to copy the whole range at p to `into`, and returns the points of the copies. The bytes are at `into` after
  /// finish(points), which does not wait once reached(points) is true. First waits for kernels that write the range.
  [[nodiscard]] std::vector<timepoint> start_read(std::byte* into, const void* p, std::size_t bytes) const;
  [[nodiscard]] bool reached(std::span<const timepoint> points) const;
  void finish(std::span<const timepoint> points) const;

  /// Waits until no device work writes the range.
  void wait_for_writers(const void* p, std::size_t bytes) const;

  /// Waits until no device work and no announced work uses the range. bytes 0: up to the end of the allocation.
  void wait_for_users(const void* p, std::size_t bytes) const;

  /// Copies the bytes [data, data + bytes), which are in `from`, to p. The copy may still be queued on return: `from`
  /// may be released at once, but must not be written before its busy() points are reached.
  void write(void* p, loan& from, const std::byte* data, std::size_t bytes) const;

  /// Waits until no device work uses the loan, so that host code may write to the loan again.
  void settle(loan& l) const;
  /// Whether settle() would return at once.
  [[nodiscard]] bool settled(const loan& l) const { return reached(l.busy().points()); }

 private:
  [[nodiscard]] work::region_range locate(const void* p, std::size_t bytes) const;
  /// Like locate, but first waits for announced work that conflicts with this use.
  [[nodiscard]] work::region_range resolve(const void* p, std::size_t bytes, host_use use) const;
  /// Queues copies of a range from its homes to `into` and appends their points to `copies`. If read_range throws, all
  /// copies in `copies` have ended.
  void read_range(std::byte* into, const work::region_range& from, std::vector<timepoint>& copies) const;
  void queue_reads(std::byte* into, const work::region_range& from, std::vector<timepoint>& copies) const;
  void write_home(const work::region_range& to, loan& from, const std::byte* data) const;

  const work::resources with_;
  const memory::uvas& space_;
  coherence::announcements& announced_;
  allocator& memory_;
  loan_pool& loans_;
};

}  // namespace hpe::core
