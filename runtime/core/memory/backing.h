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

/// Maps memory for devices at the addresses of a region: memory of the region's homes, or pinned pages of the host.
/// Thread-safe.
class backing {
 public:
  /// count: receives the amount of mapped device memory (counters::device_memory). host: provides the host memory; if
  /// it has a limit, every part is mapped in pieces.
  backing(device::device_set& devices, const memory::uvas& space, counters& count, work::host_memory& host)
      : devices_(devices), space_(space), count_(count), host_(host) {}

  using parts = std::vector<coherence::mapped_range>;

  /// Maps the memory of a region and returns the ranges as they were mapped. A part that needs much of its device's
  /// free memory is mapped in pieces, so that each piece can be evicted separately. Throws the errors of device::map,
  /// register_host and host_memory::take; if give throws, nothing is mapped.
  parts give(const coherence::region_layout& what);
  /// Like give(what), for a range of whole granules. `first`: the initial contents of the device memory.
  parts give(const coherence::region_layout& what, coherence::byte_range range,
             device::contents first = device::contents::zeros);
  /// Unmaps the memory. All work that uses the memory must have finished.
  void take(const coherence::region_layout& what, const parts& mapped) noexcept;

 private:
  /// Returns the end of the run of granules with one home that begins at `at`; at most `end`.
  [[nodiscard]] static std::uint64_t end_of_home(const coherence::region_layout& what, std::uint64_t at,
                                                 std::uint64_t end);
  /// Maps a range and appends the mapped ranges to `into`. If map throws, `into` contains the ranges mapped so far.
  void map(const coherence::region_layout& what, coherence::byte_range range, device::contents first, parts& into);

  device::device_set& devices_;
  const memory::uvas& space_;
  counters& count_;
  work::host_memory& host_;
};

/// Memory that other processes have exported and that this process has opened (hpeExportOpen). Opened memory is mapped
/// like host memory: in the view, in the alias, and for all devices, at an address of the UVAS. The files of the other
/// process are mapped in place of the shadow. Only soft devices support opened memory. Thread-safe.
class opened_memory {
 public:
  /// addresses: the segment for memory of other processes.
  opened_memory(device::device_set& devices, memory::uvas& space, memory::segment_allocator& addresses)
      : devices_(devices), space_(space), addresses_(addresses) {}

  /// Maps the parts as a new region, each directly after the one before. Each part consists of whole pages. The
  /// allocation is the `bytes` bytes from offset `first` of the region. Keeps `lease` alive until the memory is closed.
  /// If open throws, nothing is mapped.
  coherence::region_layout open(std::span<const device::shared_part> parts, std::uint64_t first, std::uint64_t bytes,
                                std::uint64_t block_size, std::shared_ptr<const void> lease);

  /// Unmaps the memory of a region; no queued work may use it. If the system does not release the addresses, they are
  /// not reused.
  void close(const coherence::region_layout& what) noexcept;

 private:
  struct opened {
    std::vector<std::uint64_t> sizes;  // the sizes of the parts, as registered with the devices
    std::shared_ptr<const void> lease;
  };

  /// Unmaps the parts and frees the addresses.
  void unmap(const coherence::region_layout& what, std::span<const std::uint64_t> sizes) noexcept;

  device::device_set& devices_;
  memory::uvas& space_;
  memory::segment_allocator& addresses_;
  mutex mutex_;
  std::map<std::byte*, opened> open_ HPE_GUARDED_BY(mutex_);  // memory by the base of its region
};

}  // namespace hpe::core
