#pragma once

/// How host code that does not know hpe (MPI libraries, system calls) accesses memory of hpe without touching the
/// program's view. Used by interpose/buffer_access.
///
/// Reading. If the host's copy of all the bytes is valid, it is read in place, through the alias: it stays valid for
/// these bytes until something writes them, whatever happens to their neighbours. Otherwise the bytes are copied from
/// their home into memory on loan.
///
/// Writing. Bytes are written into memory on loan and then put in place, exact to the byte: into the host's copy if the
/// block is in state host, else by a copy to the home that is queued like any device work. So the old bytes are never
/// fetched, and the host and kernels may use other bytes of the same block meanwhile, without a wait. Host memory
/// (hpeMallocHost) has one copy and is used in place.
///
/// Both wait only for the device work, and the announced work, that the bytes depend on.

#include <span>

#include "runtime/coherence/announcements.h"
#include "runtime/core/memory/allocator.h"
#include "runtime/core/memory/loan_pool.h"

namespace hpe::core {

/// How host code uses a range.
enum class host_use : std::uint8_t { read = 1, write = 2, read_write = 3 };

/// A part of a range; offset is counted from the range's start.
struct host_piece {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

/// Thread-safe. Throws HPE_ERROR_NOT_A_REGION for ranges that do not lie in one live allocation.
class HPE_API host_access {
 public:
  host_access(const work::resources& with, const memory::uvas& space, coherence::announcements& announced,
              allocator& memory, loan_pool& loans)
      : with_(with), space_(space), announced_(announced), memory_(memory), loans_(loans) {}

  /// nullptr for an address that cannot be hpe memory: outside hpe's address space, or hpe was not started in this
  /// process (in a child made by fork it was not). Costs a few instructions; starts nothing.
  [[nodiscard]] static host_access* of(const void* p) noexcept { return of(reinterpret_cast<std::uintptr_t>(p)); }
  /// Takes the address as a number, so that compilers see that the bytes are not read.
  [[nodiscard]] static host_access* of(std::uintptr_t address) noexcept;
  /// Whether there can be hpe memory: hpe was started in this process.
  [[nodiscard]] static bool in_use() noexcept;
  /// Whether the address was hpe memory of the process that forked this one. This process does not have it.
  [[nodiscard]] static bool inherited(const void* p) noexcept;
  /// Whether a range overlaps hpe's address space.
  [[nodiscard]] static bool meets(const void* p, std::size_t bytes) noexcept;

  /// The address where host code may use the range in place, after waiting for device work; nullptr if there is none.
  [[nodiscard]] std::byte* in_place(const void* p, std::size_t bytes, host_use use) const;

  /// Lends memory for a private copy of the range.
  [[nodiscard]] loan borrow(const void* p, std::size_t bytes);

  /// Copies pieces of the range at p to the same offsets from `into`, an address in memory on loan, and waits for the
  /// copies. Throws HPE_ERROR_DEVICE_LOST and other errors of copies.
  void read(std::byte* into, const void* p, std::size_t bytes, std::span<const host_piece> pieces) const;

  /// Starts to read the whole range. The bytes are at `into` after finish() of the returned points, which does not wait
  /// once reached() is true for them. Waits for kernels that write the range.
  [[nodiscard]] std::vector<timepoint> start_read(std::byte* into, const void* p, std::size_t bytes) const;
  [[nodiscard]] bool reached(std::span<const timepoint> points) const;
  void finish(std::span<const timepoint> points) const;

  /// Waits until no device work writes the range.
  void wait_for_writers(const void* p, std::size_t bytes) const;

  /// Puts [data, data + bytes), which lies in `from`, in place at p. The copy may still be queued on return: `from` may
  /// be released, but not written before its busy() points are reached.
  void write(void* p, loan& from, const std::byte* data, std::size_t bytes) const;

  /// Waits until no device work uses the loan, so that it may be written again.
  void settle(loan& l) const;
  /// Whether settle() would wait.
  [[nodiscard]] bool settled(const loan& l) const { return reached(l.busy().points()); }

 private:
  [[nodiscard]] work::region_range locate(const void* p, std::size_t bytes) const;
  /// Like locate, after a wait for announced work in the way.
  [[nodiscard]] work::region_range resolve(const void* p, std::size_t bytes, host_use use) const;
  /// Queues copies from homes and appends their points to `copies`. If it throws, all of `copies` have ended.
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
