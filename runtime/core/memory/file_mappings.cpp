// Invariant: the granule table names the region exactly at those granules to which files are mapped. Only there can CPU
// code and copies use the region. The views of all other granules are closed.

#include "runtime/core/memory/file_mappings.h"

#include <sys/stat.h>

#include <iterator>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"

namespace hpe::core {

using coherence::byte_range;
using coherence::region;
using work::region_range;

namespace {

void require_granules(const char* what, std::uint64_t value) {
  HPE_REQUIRE(value % granule_size == 0, HPE_ERROR_INVALID_ARGUMENT,
              "{} is {}; it has to be a multiple of {} bytes (hpeGetGranularity)", what, value, granule_size);
}

// The system would kill the process with SIGBUS at the first access to bytes beyond the end of the file.
void require_bytes_in_file(int file, std::uint64_t offset, std::uint64_t bytes) {
  struct stat about {};
  HPE_REQUIRE(::fstat(file, &about) == 0, HPE_ERROR_INVALID_ARGUMENT, "{} is not an open file", file);
  const auto size = static_cast<std::uint64_t>(about.st_size);
  HPE_REQUIRE(offset <= size && bytes <= size - offset, HPE_ERROR_INVALID_ARGUMENT,
              "{} bytes are to be mapped from offset {} of a file that has {} bytes", bytes, offset, size);
}

}  // namespace

std::byte* file_mappings::reserve(std::size_t bytes) {
  HPE_REQUIRE(with_.devices.at(0).info().kind == HPE_DEVICE_SOFT, HPE_ERROR_NOT_SUPPORTED,
              "files are mapped on soft devices only; programs that use CUDA can map memory with cuMemMap");
  require_granules("the size of a range of addresses", bytes);
  const lock_guard lock(mutex_);
  region& made = maker_.reserve(bytes);
  try {
    ranges_.emplace(made.layout.base, &made);
  } catch (...) {
    maker_.remove(made);
    throw;
  }
  return made.layout.base;
}

file_mappings::place file_mappings::find(void* address, std::size_t bytes) const {
  auto* const at = static_cast<std::byte*>(address);
  const auto after = ranges_.upper_bound(at);
  HPE_REQUIRE(after != ranges_.begin(), HPE_ERROR_NOT_A_REGION, "{} lies in no range of hpeReserve", address);
  region& r = *std::prev(after)->second;
  const std::uint64_t begin = r.offset_of(at);
  HPE_REQUIRE(begin < r.layout.extent && bytes <= r.layout.extent - begin, HPE_ERROR_NOT_A_REGION,
              "{} bytes at {} are not inside a range of hpeReserve", bytes, address);
  require_granules("the offset of a mapping in its range of addresses", begin);
  require_granules("the size of a mapping", bytes);
  HPE_REQUIRE(bytes != 0, HPE_ERROR_INVALID_ARGUMENT, "a mapping of 0 bytes was asked for");
  return {&r, {begin, begin + bytes}};
}

void file_mappings::map(void* address, std::size_t bytes, int file, std::uint64_t offset) {
  const lock_guard lock(mutex_);
  const auto [r, range] = find(address, bytes);
  HPE_REQUIRE(offset % os::page_size() == 0, HPE_ERROR_INVALID_ARGUMENT,
              "the offset {} of a mapping in its file is not a multiple of {}", offset, os::page_size());
  require_bytes_in_file(file, offset, bytes);
  {
    // The submission closes the views: a region whose mappings ran out (region::degraded) may have opened them.
    work::submission close(with_, {{r, range, HPE_OUT}});
    maker_.files().add(r->layout, range, file, offset);
    close.hand_over();
  }
  granules_.assign(r->layout.base + range.begin, range.size() / granule_size, {r->id, memory::host_home});
}

void file_mappings::unmap(void* address, std::size_t bytes) {
  region_range used;
  {
    const lock_guard lock(mutex_);
    const auto [r, range] = find(address, bytes);
    maker_.files().require_whole(r->layout, range);
    used = {r, range};
  }
  work::wait_for_users(used, true, with_.devices);
  const lock_guard lock(mutex_);
  const auto [r, range] = find(address, bytes);
  maker_.files().require_whole(r->layout, range);
  work::submission close(with_, {{r, range, HPE_OUT}});
  granules_.clear(r->layout.base + range.begin, range.size() / granule_size);
  close.hand_over();
  maker_.files().remove(r->layout, range);
}

bool file_mappings::free(void* address) {
  decltype(ranges_)::node_type ended;
  {
    const lock_guard lock(mutex_);
    ended = ranges_.extract(static_cast<std::byte*>(address));
  }
  if (ended.empty()) return false;
  maker_.remove(*ended.mapped());
  return true;
}

void file_mappings::require_mapped(const region& r, byte_range range) const {
  for (std::uint64_t at = range.begin; at < range.end; at = (at / granule_size + 1) * granule_size)
    HPE_REQUIRE(granules_.find(r.layout.base + at).region == r.id, HPE_ERROR_NOT_A_REGION,
                "{} bytes at {} reach {}, where no file is mapped", range.size(),
                static_cast<void*>(r.layout.base + range.begin), static_cast<void*>(r.layout.base + at));
}

}  // namespace hpe::core
