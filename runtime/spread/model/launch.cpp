#include "runtime/spread/model/launch.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "runtime/ptx/program/ptx_program.h"

namespace hpe::spread {

std::uint64_t launch::pointer_at(std::uint32_t offset) const {
  std::uint64_t pointer = 0;
  if (offset + sizeof pointer <= parameter_bytes)
    std::memcpy(&pointer, static_cast<const std::byte*>(parameters) + offset, sizeof pointer);
  return pointer;
}

bool launch::is_possible() const {
  for (std::size_t a = 0; a < grid.size(); ++a)
    if (grid[a] - 1U >= ptx::most_blocks[a] || block[a] - 1U >= ptx::widest_block[a]) return false;
  return true;
}

device_number kernel_array::home_of(std::uint64_t offset) const {
  const auto after = std::upper_bound(homes.begin(), homes.end(), offset,
                                      [](std::uint64_t at, const home_run& run) { return at < run.last; });
  return after == homes.end() ? (homes.empty() ? host : homes.back().home) : after->home;
}

bool subgrid::contains(const dimension& block) const {
  for (std::size_t a = 0; a < block.size(); ++a)
    if (block[a] < first[a] || block[a] - first[a] >= count[a]) return false;
  return true;
}

}  // namespace hpe::spread
