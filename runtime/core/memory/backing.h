#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/counters.h"
#include "runtime/base/thread_safety.h"
#include "runtime/coherence/region.h"
#include "runtime/device/device.h"
#include "runtime/memory/segment_allocator.h"
#include "runtime/memory/uvas.h"

namespace hpe::core {

/// What lies behind the addresses of a region, for devices: memory of its homes, or pinned pages of the host. Any
/// thread.
class backing {
 public:
  /// count: of the memory that devices give.
  backing(device::device_set& devices, const memory::uvas& space, counters& count)
      : devices_(devices), space_(space), count_(count) {}

  /// Throws what device::map and register_host throw, with nothing backed.
  void give(const coherence::region_layout& what);
  /// The same as far as it can be: what cannot be backed, on a lost device for one, is logged.
  void give_back(const coherence::region_layout& what) noexcept;
  /// The caller has made sure that no queued work uses it.
  void take(const coherence::region_layout& what) noexcept;

 private:
  void take_until(const coherence::region_layout& what, std::uint64_t end) noexcept;
  /// Where the stretch of one home that begins at a granule ends.
  [[nodiscard]] static std::uint64_t end_of_home(const coherence::region_layout& what, std::uint64_t at);
  [[nodiscard]] static unsigned home_of(const coherence::region_layout& what, std::uint64_t at);
  void map(const coherence::region_layout& what, std::uint64_t begin, std::uint64_t end);

  device::device_set& devices_;
  const memory::uvas& space_;
  counters& count_;
};

/// Memory of other processes in place of memory of this one's (hpeExportOpen). It is mapped as host memory is: at an
/// address of the UVAS, once in the view, once in the alias, and for all devices. The files take the place of the
/// shadow. Soft devices only. Any thread.
class opened_memory {
 public:
  /// addresses: of the segment of foreign memory.
  opened_memory(device::device_set& devices, memory::uvas& space, memory::segment_allocator& addresses)
      : devices_(devices), space_(space), addresses_(addresses) {}

  /// Maps the parts, whole pages, one behind the other, for a region of which `bytes` bytes from `first` on are the
  /// allocation. lease is let go of once it is closed. Throws with nothing mapped.
  coherence::region_layout open(std::span<const device::shared_part> parts, std::uint64_t first, std::uint64_t bytes,
                                std::uint64_t block_size, std::shared_ptr<const void> lease);

  /// No queued work uses it. Addresses that the system does not let go of are not handed out again.
  void close(const coherence::region_layout& what) noexcept;

 private:
  struct opened {
    std::vector<std::uint64_t> sizes;  // of the parts, as devices have them
    std::shared_ptr<const void> lease;
  };

  /// Gives the addresses back too.
  void unmap(const coherence::region_layout& what, std::span<const std::uint64_t> sizes) noexcept;

  device::device_set& devices_;
  memory::uvas& space_;
  memory::segment_allocator& addresses_;
  mutex mutex_;
  std::map<std::byte*, opened> open_ HPE_GUARDED_BY(mutex_);  // by base
};

}  // namespace hpe::core
