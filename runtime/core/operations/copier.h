#pragma once

#include "runtime/coherence/announcements.h"
#include "runtime/core/memory/allocator.h"

namespace hpe::core {

/// hpeMemcpy, hpeMemset and hpePrefetch: finds the valid copies of the bytes and has the transfer engine move them.
/// Thread-safe.
class copier {
 public:
  copier(const work::resources& with, const memory::uvas& space, coherence::announcements& announced,
         fault::service& faults, allocator& memory)
      : with_(with), space_(space), announced_(announced), faults_(faults), memory_(memory) {}

  void copy(void* destination, const void* source, std::size_t bytes);
  void fill(void* destination, std::uint8_t value, std::size_t bytes);

  /// copy and fill for calls by the program itself, which also wait for announced work.
  void copy_for_program(void* destination, const void* source, std::size_t bytes);
  void fill_for_program(void* destination, std::uint8_t value, std::size_t bytes);
  /// Waits for announced work before the program reads or writes a range, which may be ordinary memory.
  void wait_for_announced(const void* p, std::size_t bytes, bool write) const;

  /// where: a device, or HPE_HOST. bytes 0: to the end of the allocation.
  void prefetch(const void* p, std::size_t bytes, int where);

 private:
  /// The bytes of a region; region nullptr: ordinary memory.
  [[nodiscard]] work::region_range resolve(const void* p, std::size_t bytes) const;
  void copy_in(const work::region_range& to, const std::byte* source);
  /// Queues the copy of a staging buffer to a range of a region.
  void queue_in(const work::region_range& to, transfer::staged buffer);
  void copy_out(std::byte* destination, const work::region_range& from);
  void copy_across(const work::region_range& to, const work::region_range& from);
  /// The end of a piece of a copy to `to` from `begin` to at most `end`: the last block boundary before `end`, if any,
  /// because a block in state host that a piece covers in part must be uploaded first.
  [[nodiscard]] static std::uint64_t between_blocks(const work::region_range& to, std::uint64_t begin,
                                                    std::uint64_t end);
  /// A submission that overwrites a range. Throws if a home of the range is lost.
  [[nodiscard]] work::submission overwrite(const work::region_range& to) const;
  /// Calls with_part for each part of a range, in order; several parts fit into device memory together.
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
