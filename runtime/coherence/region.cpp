#include "runtime/coherence/region.h"

#include <algorithm>
#include <bit>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"

namespace hpe::coherence {

namespace {

constexpr std::uint64_t smallest_block = std::uint64_t{64} << 10;
constexpr std::uint64_t largest_block = std::uint64_t{2} << 20;

}  // namespace

std::uint64_t choose_block_size(std::uint64_t bytes, std::uint64_t wished) noexcept {
  if (wished != 0) return wished;
  return std::clamp(std::bit_ceil(bytes / 256), smallest_block, largest_block);
}

std::uint64_t choose_least_block_size(std::uint64_t bytes, std::uint64_t wished) noexcept {
  if (wished != 0) return wished;
  constexpr std::uint64_t most_blocks = 16384;  // Linux allows a process 65,530 mappings
  return std::clamp(std::bit_ceil(bytes / most_blocks), smallest_block, largest_block);
}

void region::begin(region_layout description, std::uint64_t prefetch_window, std::uint64_t rolling_window,
                   block_state initial) {
  layout = std::move(description);
  note_write();
  resident.reset(bytes_at_homes());
  on_host.clear();
  set_homes(std::move(layout.homes));
  blocks_.reset((layout.extent + layout.block_size - 1) / layout.block_size, initial);
  open_to_host = true;
  order.reset(layout.extent);
  prefetch_window_ = prefetch_window;
  rolling_window_ = rolling_window;
  advice = HPE_ADVISE_DEFAULT;
  degraded = false;
  shared.clear();
  reset_patterns();
  alive = true;
}

void region::set_homes(std::vector<std::uint16_t> homes) {
  static std::atomic<std::uint64_t> versions{0};
  homes_version_ = versions.fetch_add(1, std::memory_order_relaxed) + 1;
  layout.homes = std::move(homes);
  home_set_ = 0;
  if (!single_copy())
    for (const std::uint16_t home : layout.homes) home_set_ |= std::uint64_t{1} << home;
  order.set_homes(home_set_);
  if (anywhere_ != nullptr) anywhere_->note_new_homes();
}

bool region::is_settled(bool no_zero_copy) const {
  if (ordered_by_program()) return true;
  if (blocks_.off_device() != 0) return false;
  return single_copy() ||
         (resident.usable({0, bytes_at_homes()}) && !(no_zero_copy && resident.has_zero_copy({0, bytes_at_homes()})));
}

void region::reset_patterns() {
  std::uint64_t ahead = prefetch_window_ / layout.block_size;
  if (advice == HPE_ADVISE_READ_MOSTLY && prefetch_window_ != 0) ahead = blocks_.count();
  reader.reset(blocks_.count(), ahead);

  rolling_mode mode = rolling_mode::sequential;
  if (advice == HPE_ADVISE_ROLLING) mode = rolling_mode::always;
  if (advice == HPE_ADVISE_LAZY || rolling_window_ == 0 || single_copy() || degraded) mode = rolling_mode::never;
  // The blocks left in the window when the host stops writing are uploaded while a launch waits. So small regions get a
  // smaller window.
  constexpr std::uint64_t least_blocks = 8;
  constexpr std::uint64_t windows = 16;
  const std::uint64_t window =
      std::min(rolling_window_ / layout.block_size, std::max(least_blocks, blocks_.count() / windows));
  writer.reset(blocks_.count(), window, mode);
}

void region::advise(hpeAdvice how) {
  advice = how;
  reset_patterns();
}

void region::collapse() {
  const block_state state = blocks_[0];
  HPE_INVARIANT(blocks_.same_from(0, blocks_.count()).end == blocks_.count());
  degraded = true;
  layout.block_size = std::bit_ceil(layout.extent);
  blocks_.reset(1, state);
  open_to_host = true;
  reset_patterns();
}

std::uint64_t region::refine() {
  if (layout.least_block_size == 0 || layout.least_block_size >= layout.block_size || degraded) return 1;
  const std::uint64_t times = layout.block_size / layout.least_block_size;
  blocks_.split(times, (layout.extent + layout.least_block_size - 1) / layout.least_block_size);
  layout.block_size = layout.least_block_size;
  reset_patterns();
  return times;
}

block_run region::blocks_of(byte_range range) const noexcept {
  if (range.empty()) return {};
  return {block_of(range.begin), block_of(range.end - 1) + 1};
}

block_run region::blocks_overwritten_by(byte_range range) const noexcept {
  return blocks_within({range.begin, range.end >= layout.bytes ? layout.extent : range.end});
}

block_run region::blocks_within(byte_range range) const noexcept {
  const std::uint64_t begin = (range.begin + layout.block_size - 1) / layout.block_size;
  const std::uint64_t end = range.end >= layout.extent ? blocks_.count() : range.end / layout.block_size;
  return {begin, std::max(begin, end)};
}

byte_range region::bytes_of(block_run run) const noexcept {
  return {run.begin * layout.block_size, std::min(run.end * layout.block_size, layout.extent)};
}

std::uint64_t region::bytes_at_homes() const noexcept {
  return single_copy() ? 0 : round_up(layout.bytes, granule_size);
}

std::uint16_t region::home_of(std::uint64_t offset) const noexcept { return layout.home_of(offset); }

std::uint64_t region::end_of_home(std::uint64_t offset, std::uint64_t limit) const noexcept {
  if (layout.homes.size() == 1) return limit;
  std::uint64_t granule = offset / granule_size;
  const std::uint16_t home = layout.homes[granule];
  while (granule < layout.homes.size() && layout.homes[granule] == home && granule * granule_size < limit) ++granule;
  return std::min<std::uint64_t>(granule * granule_size, limit);
}

std::uint64_t region::end_of_part(std::uint64_t begin, std::uint64_t limit, std::uint64_t most) const noexcept {
  const std::uint64_t end = end_of_home(begin, limit - begin > most ? begin + most : limit);
  if (end == limit) return end;
  const std::uint64_t between_blocks = end / layout.block_size * layout.block_size;
  return between_blocks > begin ? between_blocks : end;
}

void region::transition(block_run run, block_event event) noexcept {
  // Reads, and copies between host and home, do not change the region's contents.
  using enum block_event;
  if (event == host_write || event == host_overwrite || event == fetched_for_write || event == abandoned) note_write();
  // Device work leaves the shadow as it is.
  if (event != device_read && event != device_write && event != device_overwrite)
    resident.forget_fingerprints(bytes_of(run));
  blocks_.transition(run, event);
  if (blocks_.off_device() == 0) return;
  unsettle();
  open_soon();
}

void region::begin_fetch(block_run run, block_event event, std::uint32_t number) noexcept {
  resident.forget_fingerprints(bytes_of(run));
  blocks_.begin_fetch(run, event, number);
  unsettle();
  open_soon();
}

}  // namespace hpe::coherence
