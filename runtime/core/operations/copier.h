#pragma once

#include "runtime/coherence/announcements.h"
#include "runtime/core/memory/allocator.h"

namespace hpe::core {

/// Implements hpeMemcpy, hpeMemset and hpePrefetch: finds the valid copies of the bytes and has the transfer engine
/// copy them. Thread-safe.
class copier {
 public:
  copier(const work::resources& with, const memory::uvas& space, coherence::announcements& announced,
         fault::service& faults, allocator& memory)
      : with_(with), space_(space), announced_(announced), faults_(faults), memory_(memory) {}

  void copy(void* destination, const void* source, std::size_t bytes);
  void fill(void* destination, std::uint8_t value, std::size_t bytes);

  /// Like copy and fill, but first wait for announced work. For calls by the program.
  void copy_for_program(void* destination, const void* source, std::size_t bytes);
  void fill_for_program(void* destination, std::uint8_t value, std::size_t bytes);
  /// Waits for the announced work that must end before the program reads or writes a range. The range may be ordinary
  /// memory.
  void wait_for_announced(const void* p, std::size_t bytes, bool write) const;

  /// where: a device, or HPE_HOST. bytes 0: the range extends to the end of the allocation.
  void prefetch(const void* p, std::size_t bytes, int where);

 private:
  /// Returns the bytes as a range of a region; the region is nullptr for ordinary memory.
  [[nodiscard]] work::region_range resolve(const void* p, std::size_t bytes) const;
  void copy_in(const work::region_range& to, const std::byte* source);
  /// Queues the copy of a staging buffer's bytes to a range of a region.
  void queue_in(const work::region_range& to, transfer::staged buffer);
  void copy_out(std::byte* destination, const work::region_range& from);
  void copy_across(const work::region_range& to, const work::region_range& from);
  /// Returns the end of the chunk that begins at `begin`, in a copy to `to`: the last block boundary up to `end`, or
  /// `end` if the whole copy ends there, or if there is no block boundary between `begin` and `end`. The chunks end at
  /// block boundaries because a block in state host must be uploaded before a chunk overwrites only a part of it.
  [[nodiscard]] static std::uint64_t between_blocks(const work::region_range& to, std::uint64_t begin,
                                                    std::uint64_t end);
  /// Returns a submission for work that overwrites a range. Throws if a home of the range is lost.
  [[nodiscard]] work::submission overwrite(const work::region_range& to) const;
  /// Divides a range into parts, so small that device memory can hold several of them at once, and calls with_part for
  /// each part, in order.
  template <class WithPart>
  void in_parts_that_fit(const work::region_range& all, const WithPart& with_part) const;
  [[nodiscard]] std::byte* alias(const work::region_range& bytes) const;

  const work::resources with_;
  const memory::uvas& space_;
  coherence::announcements& announced_;
  fault::service& faults_;
  allocator& memory_;
};

}  // namespace hpe::core
