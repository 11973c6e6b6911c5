#pragma once

#include <memory>
#include <span>

#include "runtime/coherence/announcements.h"
#include "runtime/core/memory/allocator.h"
#include "runtime/trace/call_sites.h"

/// The object behind the handle of an announcement in the C interface.
struct hpeAnnouncement_st {
  hpe::coherence::announcement_number number = 0;  ///< 0: CPU code does not wait, because the work uses no hpe memory
  std::vector<hpe::coherence::region*> acquired;   ///< the regions of hpeAcquire, whose data stays on the device
  bool begun = false;                              ///< whether a thread has begun the work; that thread will end it
  std::unique_ptr<hpe::trace::call_stack> from;    ///< the call stack of hpeAnnounce; null without a profile
};

namespace hpe::core {

/// Announces work that waits in a queue of the program; see hpe/announce.h. Thread-safe.
class announcer {
 public:
  announcer(const work::resources& with, const memory::uvas& space, coherence::region_table& regions,
            coherence::announcements& announced, fault::service& faults, allocator& memory)
      : with_(with), space_(space), regions_(regions), announced_(announced), faults_(faults), memory_(memory) {}

  [[nodiscard]] std::unique_ptr<hpeAnnouncement_st> announce(std::uint64_t homes, std::span<const hpeAccess> accesses);
  /// See hpeAcquire.
  [[nodiscard]] std::unique_ptr<hpeAnnouncement_st> acquire(std::span<const hpeAccess> accesses);
  /// Waits until no announced work uses the region of an allocation, which may contain other small allocations.
  void wait_for_region(const void* p) const;
  /// Waits until no announced work uses an allocation. Does nothing if no allocation begins at the address.
  void wait_before_free(const void* p) const;
  void begin(hpeAnnouncement_st& work) const;
  void end(const hpeAnnouncement_st& work) const;

 private:
  using announced_use = coherence::announcements::announced_use;

  /// Announces the uses, calls prepare(), and takes the announcement back if prepare() throws.
  template <class Prepare>
  [[nodiscard]] std::unique_ptr<hpeAnnouncement_st> record(std::uint64_t homes, std::vector<announced_use> uses,
                                                           const Prepare& prepare) const;
  [[nodiscard]] std::vector<announced_use> resolve(std::span<const hpeAccess> accesses) const;
  /// Queues uploads of the bytes that the host has written and closes the views, for all memory with these homes and
  /// for the memory of `uses`.
  void release(std::uint64_t homes, std::span<const announced_use> uses) const;
  void close_again(bool opened) const;

  const work::resources with_;
  const memory::uvas& space_;
  coherence::region_table& regions_;
  coherence::announcements& announced_;
  fault::service& faults_;
  allocator& memory_;
};

}  // namespace hpe::core
