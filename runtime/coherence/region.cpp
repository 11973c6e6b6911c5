#include "runtime/coherence/region.h"

#include <algorithm>
#include <bit>

#include "runtime/base/granule.h"

namespace hpe::coherence {

std::uint64_t choose_block_size(std::uint64_t bytes, std::uint64_t wished) noexcept {
  if (wished != 0) return wished;
  return std::clamp<std::uint64_t>(std::bit_ceil(bytes / 256), std::uint64_t{64} << 10, std::uint64_t{2} << 20);
}

void region::begin(region_description description, std::uint64_t prefetch_window, std::uint64_t rolling_window) {
  is = std::move(description);
  set_homes(std::move(is.homes));
  blocks.assign((is.extent + is.block_size - 1) / is.block_size, {});
  off_device = blocks.size();
  open_to_host = true;
  order.reset(is.extent);
  prefetch_window_ = prefetch_window;
  rolling_window_ = rolling_window;
  advice = HPE_ADVISE_DEFAULT;
  degraded = false;
  shadow_used = false;
  shared = 0;
  exports.clear();
  reset_patterns();
  alive = true;
}

void region::set_homes(std::vector<std::uint16_t> homes) {
  is.homes = std::move(homes);
  home_set_ = 0;
  if (single_copy()) return;
  for (const std::uint16_t home : is.homes) home_set_ |= std::uint64_t{1} << home;
}

void region::begin_at_home() noexcept {
  shadow_used = true;
  for (std::uint64_t b = 0; b < blocks.size(); ++b) set_state(b, block_state::device);
}

void region::reset_patterns() {
  std::uint64_t ahead = prefetch_window_ / is.block_size;
  if (advice == HPE_ADVISE_READ_MOSTLY && prefetch_window_ != 0) ahead = blocks.size();
  reader.reset(blocks.size(), ahead);

  rolling_mode mode = rolling_mode::sequential;
  if (advice == HPE_ADVISE_ROLLING) mode = rolling_mode::always;
  if (advice == HPE_ADVISE_LAZY || rolling_window_ == 0 || single_copy() || degraded) mode = rolling_mode::never;
  // What is left in the window when the host is done is uploaded while a launch waits: of small regions it has to be
  // less.
  constexpr std::uint64_t least_blocks = 8;
  constexpr std::uint64_t windows = 16;
  const std::uint64_t window =
      std::min(rolling_window_ / is.block_size, std::max(least_blocks, blocks.size() / windows));
  writer.reset(blocks.size(), window, mode);
}

void region::advise(hpeAdvice how) {
  advice = how;
  reset_patterns();
}

void region::collapse(block_state state) {
  degraded = true;
  is.block_size = std::bit_ceil(is.extent);
  blocks.assign(1, {});
  off_device = 1;
  open_to_host = true;
  set_state(0, state);
  reset_patterns();
}

block_run region::blocks_of(byte_range range) const noexcept {
  if (range.empty()) return {};
  return {block_of(range.begin), block_of(range.end - 1) + 1};
}

byte_range region::bytes_of(block_run run) const noexcept {
  return {run.begin * is.block_size, std::min(run.end * is.block_size, is.extent)};
}

std::uint16_t region::home_of(std::uint64_t offset) const noexcept {
  return is.homes.size() == 1 ? is.homes[0] : is.homes[offset / granule_size];
}

std::uint64_t region::end_of_home(std::uint64_t offset, std::uint64_t limit) const noexcept {
  if (is.homes.size() == 1) return limit;
  std::uint64_t granule = offset / granule_size;
  const std::uint16_t home = is.homes[granule];
  while (granule < is.homes.size() && is.homes[granule] == home && granule * granule_size < limit) ++granule;
  return std::min<std::uint64_t>(granule * granule_size, limit);
}

void region::set_state(std::uint64_t index, block_state next) noexcept {
  block& b = blocks[index];
  if (b.state != block_state::device && next == block_state::device) --off_device;
  if (b.state == block_state::device && next != block_state::device) {
    ++off_device;
    open_soon();
  }
  b.state = next;
  shadow_used = shadow_used || next == block_state::host || next == block_state::fetching;
}

}  // namespace hpe::coherence
