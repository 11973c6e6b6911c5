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
#include "runtime/work/host_memory.h"

namespace hpe::core {

/// The memory behind the addresses of a region on devices: memory of its homes, or pinned pages of the host.
/// Thread-safe.
class backing {
 public:
  /// count: counts the memory that devices give (counters::device_memory).
  /// host: gives host memory, and maps all parts in pieces if it has a limit.
  backing(device::device_set& devices, const memory::uvas& space, counters& count, work::host_memory& host)
      : devices_(devices), space_(space), count_(count), host_(host) {}

  using parts = std::vector<coherence::mapped_range>;

  /// Maps the memory, and returns the parts as they were mapped. A part that takes much of the free memory of its
  /// device is mapped in pieces, so that it can make room piece by piece. Throws the errors of device::map and
  /// register_host, with nothing mapped.
  parts give(const coherence::region_layout& what);
  /// The same for a range of whole granules on devices.
  parts give(const coherence::region_layout& what, coherence::byte_range range);
  /// Unmaps the memory, which no queued work may use any more.
  void take(const coherence::region_layout& what, const parts& mapped) noexcept;

 private:
  /// The end of the granules from `at` on that have one home, at most `end`.
  [[nodiscard]] static std::uint64_t end_of_home(const coherence::region_layout& what, std::uint64_t at,
                                                 std::uint64_t end);
  /// Appends to `into`; if it throws, what it had mapped is in `into`.
  void map(const coherence::region_layout& what, std::uint64_t begin, std::uint64_t end, parts& into);

  device::device_set& devices_;
  const memory::uvas& space_;
  counters& count_;
  work::host_memory& host_;
};

/// Memory of other processes, opened in this one (hpeExportOpen). It is mapped like host memory: at an address of the
/// UVAS, in the view, in the alias, and for all devices. The files of the other process take the place of the shadow.
/// Soft devices only. Thread-safe.
class opened_memory {
 public:
  /// addresses: the segment of foreign memory.
  opened_memory(device::device_set& devices, memory::uvas& space, memory::segment_allocator& addresses)
      : devices_(devices), space_(space), addresses_(addresses) {}

  /// Maps the parts, which are whole pages, one after the other, for a region whose allocation is the `bytes` bytes
  /// from `first` on. Keeps lease until the memory is closed. If it throws, nothing is mapped.
  coherence::region_layout open(std::span<const device::shared_part> parts, std::uint64_t first, std::uint64_t bytes,
                                std::uint64_t block_size, std::shared_ptr<const void> lease);

  /// Unmaps memory that no queued work uses. Addresses that the system does not release are not handed out again.
  void close(const coherence::region_layout& what) noexcept;

 private:
  struct opened {
    std::vector<std::uint64_t> sizes;  // of the parts, as registered with devices
    std::shared_ptr<const void> lease;
  };

  /// Also frees the addresses.
  void unmap(const coherence::region_layout& what, std::span<const std::uint64_t> sizes) noexcept;

  device::device_set& devices_;
  memory::uvas& space_;
  memory::segment_allocator& addresses_;
  mutex mutex_;
  std::map<std::byte*, opened> open_ HPE_GUARDED_BY(mutex_);  // by base
};

}  // namespace hpe::core
