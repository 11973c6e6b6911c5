#pragma once

#include "runtime/coherence/announcements.h"
#include "runtime/core/memory/allocator.h"

namespace hpe::core {

/// hpeMemcpy, hpeMemset and hpePrefetch: finds out where the bytes are good and has the transfer engine move them.
/// Any thread.
class copier {
 public:
  copier(const work::resources& with, const memory::uvas& space, coherence::announcements& announced,
         fault::service& faults, allocator& memory)
      : with_(with), space_(space), announced_(announced), faults_(faults), memory_(memory) {}

  void copy(void* destination, const void* source, std::size_t bytes);
  void fill(void* destination, std::uint8_t value, std::size_t bytes);

  /// The same when the program itself asks for it: after work that it has announced.
  void copy_for_program(void* destination, const void* source, std::size_t bytes);
  void fill_for_program(void* destination, std::uint8_t value, std::size_t bytes);
  /// Waits for such work before the program reads or writes a range, which may be ordinary memory.
  void wait_for_announced(const void* p, std::size_t bytes, bool write) const;

  /// where is a device, or HPE_HOST. bytes 0: to the end of the allocation.
  void prefetch(const void* p, std::size_t bytes, int where);

 private:
  /// Region nullptr: ordinary memory.
  [[nodiscard]] work::region_range resolve(const void* p, std::size_t bytes) const;
  void copy_in(const work::region_range& to, const std::byte* source);
  /// Queues what a staging buffer holds, for a range of a region.
  void queue_in(const work::region_range& to, transfer::staged buffer);
  void copy_out(std::byte* destination, const work::region_range& from);
  void copy_across(const work::region_range& to, const work::region_range& from);
  /// Where a piece of a copy to `to` may end that begins at `begin` and would end at `end`: between blocks, if it
  /// reaches that far, because a block of the host's that a piece covers in part is uploaded first.
  [[nodiscard]] static std::uint64_t between_blocks(const work::region_range& to, std::uint64_t begin,
                                                    std::uint64_t end);
  /// Device work that overwrites a range whose homes are all there.
  [[nodiscard]] work::submission overwrite(const work::region_range& to) const;
  [[nodiscard]] std::byte* alias(const work::region_range& bytes) const;

  const work::resources with_;
  const memory::uvas& space_;
  coherence::announcements& announced_;
  fault::service& faults_;
  allocator& memory_;
};

}  // namespace hpe::core
