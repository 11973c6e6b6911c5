#pragma once

/// How code of the host that does not know hpe (MPI libraries, system calls) gets at memory of hpe without touching the
/// program's view. interpose/buffer_access is its user.
///
/// Reading. Where the host's copy of all the bytes is good, it is read in place, through the alias: it stays good for
/// these bytes as long as nobody writes them, whatever happens to their neighbours. Elsewhere the bytes are copied from
/// their home into memory on loan.
///
/// Writing. Bytes are written into memory on loan and put in place afterwards, exact to the byte: into the host's copy
/// where the host owns the block, else by a copy to the home that is queued like any device work. So the old bytes
/// are never fetched, and what the host or a kernel does meanwhile with other bytes of the same block is neither
/// waited for nor disturbed. Host memory (hpeMallocHost) has one copy and is used in place.
///
/// Both wait for the device work that the bytes depend on, and for nothing else.

#include <span>

#include "runtime/coherence/announcements.h"
#include "runtime/core/memory/allocator.h"
#include "runtime/core/memory/loan_pool.h"

namespace hpe::core {

/// What host code does with a range.
enum class host_use : std::uint8_t { read = 1, write = 2, read_write = 3 };

/// A part of a range: offset from its start.
struct host_piece {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

/// Any thread. Ranges must lie in one allocation; else, and if it was freed meanwhile, HPE_ERROR_NOT_A_REGION.
class HPE_API host_access {
 public:
  host_access(const work::resources& with, const memory::uvas& space, coherence::announcements& announced,
              allocator& memory, loan_pool& loans)
      : with_(with), space_(space), announced_(announced), memory_(memory), loans_(loans) {}

  /// nullptr for an address that cannot be memory of hpe: outside its address space, or hpe was not started (in this
  /// process, if it is a child made by fork). Costs a few instructions; starts nothing.
  [[nodiscard]] static host_access* of(const void* p) noexcept { return of(reinterpret_cast<std::uintptr_t>(p)); }
  /// By number, from which compilers see that the bytes are not read.
  [[nodiscard]] static host_access* of(std::uintptr_t address) noexcept;
  /// Whether there can be memory of hpe: it was started, in this process.
  [[nodiscard]] static bool in_use() noexcept;
  /// Whether an address was memory of the process that this one was forked from, which has it no more.
  [[nodiscard]] static bool inherited(const void* p) noexcept;
  /// Whether a range meets hpe's address space at all.
  [[nodiscard]] static bool meets(const void* p, std::size_t bytes) noexcept;

  /// Where host code may use the range as it is, after waiting for the device work in its way; nullptr if it cannot.
  [[nodiscard]] std::byte* in_place(const void* p, std::size_t bytes, host_use use) const;

  /// Memory for a private copy of the range.
  [[nodiscard]] loan borrow(const void* p, std::size_t bytes);

  /// Copies some pieces of the range at p to the same offsets from `into`, a place in memory on loan. Waits. Throws
  /// HPE_ERROR_DEVICE_LOST and what else copies can meet.
  void read(std::byte* into, const void* p, std::size_t bytes, std::span<const host_piece> pieces) const;

  /// read() of the whole range in two steps: the bytes are at `into` once finish() of what it returns has returned,
  /// which does not wait once reached() says so. Waits for kernels that write the range.
  [[nodiscard]] std::vector<timepoint> start_read(std::byte* into, const void* p, std::size_t bytes) const;
  [[nodiscard]] bool reached(std::span<const timepoint> points) const;
  void finish(std::span<const timepoint> points) const;

  /// Waits until no device work writes the range.
  void wait_for_writers(const void* p, std::size_t bytes) const;

  /// Puts [data, data + bytes), which lies in `from`, in place at p. The copy may be queued when it returns; `from` may
  /// be let go, but not written before its busy() points are reached.
  void write(void* p, loan& from, const std::byte* data, std::size_t bytes) const;

  /// Waits until device work has no more use for a loan that will be written again.
  void settle(loan& l) const;
  /// Whether settle() would wait.
  [[nodiscard]] bool settled(const loan& l) const { return reached(l.busy().points()); }

 private:
  [[nodiscard]] work::region_range locate(const void* p, std::size_t bytes) const;
  /// The same, after waiting for announced work in the way.
  [[nodiscard]] work::region_range resolve(const void* p, std::size_t bytes, host_use use) const;
  /// Queues copies from homes, which are added to `copies`. If it throws, none of `copies` is under way any more.
  void read_piece(std::byte* into, const work::region_range& from, std::vector<timepoint>& copies) const;
  void queue_reads(std::byte* into, const work::region_range& from, std::vector<timepoint>& copies) const;
  void write_home(const work::region_range& to, loan& from, const std::byte* data) const;

  const work::resources with_;
  const memory::uvas& space_;
  coherence::announcements& announced_;
  allocator& memory_;
  loan_pool& loans_;
};

}  // namespace hpe::core
