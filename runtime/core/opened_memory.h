#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "runtime/coherence/region.h"
#include "runtime/core/environment.h"
#include "runtime/memory/segment_allocator.h"

namespace hpe::core {

/// Memory of other processes in place of memory of this one's (hpeExportOpen). It is mapped as host memory is: at an
/// address of the UVAS, once in the view, once in the alias, and for all devices. The files take the place of the
/// shadow. Soft devices only. Any thread.
class opened_memory {
 public:
  /// addresses: of the segment of foreign memory.
  opened_memory(const environment& env, memory::segment_allocator& addresses) : env_(env), addresses_(addresses) {}

  /// Maps the parts, whole pages, one behind the other, for a region of which `bytes` bytes from `first` on are the
  /// allocation. lease is let go of once it is closed. Throws with nothing mapped.
  coherence::region_description open(std::span<const device::shared_part> parts, std::uint64_t first,
                                     std::uint64_t bytes, std::shared_ptr<const void> lease);

  /// No queued work uses it.
  void close(const coherence::region_description& what);

 private:
  struct one {
    std::vector<std::uint64_t> sizes;  // of the parts, as devices have them
    std::shared_ptr<const void> lease;
  };

  void unmap(std::byte* base, std::span<const std::uint64_t> sizes);

  environment env_;
  memory::segment_allocator& addresses_;
  std::mutex mutex_;
  std::map<std::byte*, one> open_;  // by base
};

}  // namespace hpe::core
