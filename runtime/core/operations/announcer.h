#pragma once

#include <memory>
#include <span>

#include "runtime/coherence/announcements.h"
#include "runtime/core/memory/allocator.h"
#include "runtime/trace/call_sites.h"

/// The object behind the handle of an announcement in the C interface.
struct hpeAnnouncement_st {
  hpe::coherence::announcement_number number = 0;  ///< 0: it uses no memory for which CPU code would wait
  bool begun = false;                              ///< a thread began the work, and will end it
  std::unique_ptr<hpe::trace::call_stack> from;    ///< where it was made, if there is a profile
};

namespace hpe::core {

/// Announces work that the program has queued elsewhere; see hpe/announce.h. Thread-safe.
class announcer {
 public:
  announcer(const work::resources& with, const memory::uvas& space, coherence::region_table& regions,
            coherence::announcements& announced, fault::service& faults, allocator& memory)
      : with_(with), space_(space), regions_(regions), announced_(announced), faults_(faults), memory_(memory) {}

  [[nodiscard]] std::unique_ptr<hpeAnnouncement_st> announce(std::uint64_t homes, std::span<const hpeAccess> accesses);
  void begin(hpeAnnouncement_st& work) const;
  void end(const hpeAnnouncement_st& work) const;

 private:
  using use = coherence::announcements::use;

  [[nodiscard]] std::vector<use> resolve(std::span<const hpeAccess> accesses) const;
  /// Closes the views of memory with these homes and of the uses, after queuing uploads of what the host wrote.
  void release(std::uint64_t homes, std::span<const use> uses) const;
  void close_again(bool opened) const;

  const work::resources with_;
  const memory::uvas& space_;
  coherence::region_table& regions_;
  coherence::announcements& announced_;
  fault::service& faults_;
  allocator& memory_;
};

}  // namespace hpe::core
