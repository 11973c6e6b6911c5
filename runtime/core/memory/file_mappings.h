#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "runtime/base/thread_safety.h"
#include "runtime/coherence/region.h"
#include "runtime/core/memory/region_maker.h"
#include "runtime/memory/granule_table.h"
#include "runtime/work/submission.h"

namespace hpe::core {

/// Ranges of addresses into which the program maps files of memory: hpeReserve, hpeMapFile and hpeUnmapFile. Each range
/// is a region of mapped files (region_layout::mapped). Thread-safe.
class file_mappings {
 public:
  file_mappings(const work::resources& with, memory::granule_table& granules, region_maker& maker)
      : with_(with), granules_(granules), maker_(maker) {}

  /// Throws HPE_ERROR_INVALID_ARGUMENT unless `bytes` is a multiple of the granule, HPE_ERROR_OUT_OF_MEMORY, and
  /// HPE_ERROR_NOT_SUPPORTED on GPUs.
  [[nodiscard]] std::byte* reserve(std::size_t bytes);

  /// Maps a part of a file. Throws HPE_ERROR_NOT_A_REGION outside all ranges, HPE_ERROR_INVALID_ARGUMENT unless the
  /// address and the sizes are multiples of the granule, the file has these bytes and no file is mapped in the range;
  /// and HPE_ERROR_SYSTEM. If map throws, nothing is mapped.
  void map(void* address, std::size_t bytes, int file, std::uint64_t offset);
  /// Waits for the work that uses the bytes, and unmaps them. The bytes must consist of whole mappings.
  void unmap(void* address, std::size_t bytes);

  /// Frees the range that begins at `address`, with its mappings. Returns false if no range begins there.
  bool free(void* address);

  /// Throws HPE_ERROR_NOT_A_REGION unless files are mapped to all bytes of `range`.
  void require_mapped(const coherence::region& r, coherence::byte_range range) const;

 private:
  struct place {
    coherence::region* region;
    coherence::byte_range range;
  };
  [[nodiscard]] place find(void* address, std::size_t bytes) const HPE_REQUIRES(mutex_);

  const work::resources with_;
  memory::granule_table& granules_;
  region_maker& maker_;
  mutable mutex mutex_;  // taken before the mutexes of regions; serialises map() and unmap()
  std::map<std::byte*, coherence::region*> ranges_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::core
