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
#include "runtime/work/host_spill.h"

namespace hpe::core {

/// Maps memory for devices at the addresses of a region: memory of the region's homes, or pinned pages of the host.
/// Thread-safe.
class backing {
 public:
  /// count: receives the amount of mapped device memory (counters::device_memory). host: provides the host memory; if
  /// it has a limit, every part is mapped in pieces.
  backing(device::device_set& devices, const memory::uvas& space, counters& count, work::host_spill& host)
      : devices_(devices), space_(space), count_(count), host_(host) {}

  using parts = std::vector<coherence::mapped_range>;

  /// Maps the memory of a region and returns the ranges as they were mapped. A part that needs much of its device's
  /// free memory is mapped in pieces, so that each piece can be evicted separately. Throws the errors of device::map,
  /// register_host and host_spill::take; if give throws, nothing is mapped.
  parts give(const coherence::region_layout& what);
  /// Like give(what), for a range of whole granules. `first`: the initial contents of the device memory.
  parts give(const coherence::region_layout& what, coherence::byte_range range,
             device::contents first = device::contents::zeros);
  /// Unmaps the memory. All work that uses the memory must have finished.
  void take(const coherence::region_layout& what, const parts& mapped) noexcept;

  /// Maps memory behind the last granule of a region, so that reads a little past the end of the allocation do not
  /// fail, and sets what.behind. Maps nothing if the memory in the last granule suffices for such reads, or if there is
  /// no device memory.
  void give_behind(coherence::region_layout& what);
  /// Unmaps the memory that give_behind has mapped.
  void take_behind(const coherence::region_layout& what) noexcept;

 private:
  /// Returns the end of the run of granules with one home that begins at `at`; at most `end`.
  [[nodiscard]] static std::uint64_t end_of_home(const coherence::region_layout& what, std::uint64_t at,
                                                 std::uint64_t end);
  /// Maps a range and appends the mapped ranges to `into`. If map throws, `into` contains the ranges mapped so far.
  void map(const coherence::region_layout& what, coherence::byte_range range, device::contents first, parts& into);

  device::device_set& devices_;
  const memory::uvas& space_;
  counters& count_;
  work::host_spill& host_;
};

/// Regions of files: memory that other processes have exported and that this process has opened (hpeExportOpen), and
/// files that the program maps (hpeMapFile). The files are mapped like host memory, but in place of the shadow: in the
/// view, in the alias, and for all devices, at an address of the UVAS. Only soft devices support these regions.
/// Thread-safe.
class opened_memory {
 public:
  /// addresses: the segment for these regions.
  opened_memory(device::device_set& devices, memory::uvas& space, memory::segment_allocator& addresses)
      : devices_(devices), space_(space), addresses_(addresses) {}

  /// Maps the parts as a new region, each directly after the one before. Each part consists of whole pages. The
  /// allocation is the `bytes` bytes from offset `first` of the region. Keeps `lease` alive until the memory is closed.
  /// If open throws, nothing is mapped.
  coherence::region_layout open(std::span<const device::shared_part> parts, std::uint64_t first, std::uint64_t bytes,
                                std::uint64_t block_size, std::shared_ptr<const void> lease);

  /// Reserves the addresses of a region without memory. `bytes` is a multiple of the granule.
  coherence::region_layout reserve(std::uint64_t bytes);
  /// Maps a part of a file into a region. The range consists of whole pages. Throws HPE_ERROR_INVALID_ARGUMENT if a
  /// file is mapped in a part of the range already. If add throws, nothing is mapped.
  void add(const coherence::region_layout& to, coherence::byte_range range, int file, std::uint64_t offset);
  /// Undoes calls of add(). The range must consist of whole ranges of these calls (require_whole), and no queued work
  /// may use the memory.
  void remove(const coherence::region_layout& from, coherence::byte_range range);
  /// Throws HPE_ERROR_INVALID_ARGUMENT unless the range consists of whole ranges of calls of add().
  void require_whole(const coherence::region_layout& what, coherence::byte_range range) const;

  /// Unmaps the memory of a region; no queued work may use it. If the system does not release the addresses, they are
  /// not reused.
  void close(const coherence::region_layout& what) noexcept;

 private:
  struct opened {
    // The offset and the size of each part, as registered with the devices.
    std::map<std::uint64_t, std::uint64_t> parts;
    bool leaks = false;  // the system has not released some addresses
    std::shared_ptr<const void> lease;
  };

  /// Reserves addresses for a region without memory.
  coherence::region_layout new_layout(std::uint64_t first, std::uint64_t bytes, std::uint64_t extent,
                                      std::uint64_t block_size);
  /// Maps one part. If map throws, nothing is mapped.
  void map(std::byte* address, std::uint64_t bytes, int file, std::uint64_t offset);
  /// Unmaps one part. Returns false if the system does not release its addresses.
  bool unmap(std::byte* address, std::uint64_t bytes) noexcept;

  device::device_set& devices_;
  memory::uvas& space_;
  memory::segment_allocator& addresses_;
  mutable mutex mutex_;
  std::map<std::byte*, opened> open_ HPE_GUARDED_BY(mutex_);  // memory by the base of its region
};

}  // namespace hpe::core
