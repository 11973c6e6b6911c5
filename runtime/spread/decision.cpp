#include "runtime/spread/decision.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "runtime/ptx/program/ptx_program.h"

namespace hpe::spread {

namespace {

void append_run(std::vector<home_run>& runs, home_run next) {
  if (next.first >= next.last) return;
  if (!runs.empty() && runs.back().home == next.home) {
    runs.back().last = next.last;
  } else {
    runs.push_back(next);
  }
}

std::string words_of_bytes(std::uint64_t bytes) {
  constexpr std::uint64_t mib = 1U << 20U;
  if (bytes % mib == 0 || bytes >= 16 * mib) return fmt::format("{} MiB", (bytes + mib / 2) / mib);
  return fmt::format("{} KiB", (bytes + 512) / 1024);
}

}  // namespace

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

cut cut_grid(const dimension& grid, const std::array<std::uint32_t, 3>& parts_along) {
  cut result;
  result.parts_along = parts_along;
  for (std::uint32_t z = 0; z < parts_along[2]; ++z) {
    for (std::uint32_t y = 0; y < parts_along[1]; ++y) {
      for (std::uint32_t x = 0; x < parts_along[0]; ++x) {
        const std::array<std::uint32_t, 3> at{x, y, z};
        subgrid part;
        for (std::size_t a = 0; a < grid.size(); ++a) {
          part.first[a] = static_cast<std::uint32_t>(std::uint64_t{grid[a]} * at[a] / parts_along[a]);
          part.count[a] =
              static_cast<std::uint32_t>(std::uint64_t{grid[a]} * (at[a] + 1) / parts_along[a]) - part.first[a];
        }
        result.parts.push_back(part);
      }
    }
  }
  return result;
}

cut cut_evenly(const dimension& grid, std::uint32_t devices) {
  std::size_t axis = grid.size() - 1;
  while (axis > 0 && grid[axis] == 1) --axis;
  std::array<std::uint32_t, 3> parts_along{1, 1, 1};
  parts_along[axis] = std::min(devices, grid[axis]);
  cut result = cut_grid(grid, parts_along);
  result.parts.resize(devices);
  return result;
}

cut whole_grid(const dimension& grid, std::uint32_t devices, device_number on) {
  cut result;
  result.parts.resize(devices);
  result.parts[static_cast<std::size_t>(on)].count = grid;
  return result;
}

std::vector<home_run> homes_under(const array_placement& p, const kernel_array& a, std::uint32_t devices) {
  std::vector<home_run> runs;
  switch (p.how) {
    case array_placement::kind::stay:
    case array_placement::kind::replicated: return a.homes;
    case array_placement::kind::one: append_run(runs, {0, a.bytes, p.home}); break;
    case array_placement::kind::parts:
      for (std::uint32_t d = 0; d < devices; ++d)
        append_run(runs, {std::min(p.bounds[d], a.bytes), std::min(p.bounds[d + 1], a.bytes), static_cast<int>(d)});
      break;
    case array_placement::kind::cyclic:
      for (std::uint64_t at = 0, n = 0; at < a.bytes; at += p.run, ++n)
        append_run(runs, {at, std::min(at + p.run, a.bytes), static_cast<device_number>(n % devices)});
      break;
  }
  return runs;
}

std::string words_of(const array_placement& p) {
  switch (p.how) {
    case array_placement::kind::stay: return "as it is";
    case array_placement::kind::one: return fmt::format("on device {}", p.home);
    case array_placement::kind::parts: return fmt::format("in {} parts", p.bounds.size() - 1);
    case array_placement::kind::cyclic: return fmt::format("dealt out in runs of {}", words_of_bytes(p.run));
    case array_placement::kind::replicated: break;
  }
  return "a copy on each device";
}

bool decision::gives_homes() const {
  return std::any_of(arrays.begin(), arrays.end(), [](const array_decision& a) {
    return a.move_to.how != array_placement::kind::stay && a.move_to.how != array_placement::kind::replicated;
  });
}

bool decision::uses_copies() const {
  return std::any_of(arrays.begin(), arrays.end(), [](const array_decision& a) { return a.use_replica; });
}

decision decision::without_moves() const {
  decision same = *this;
  for (array_decision& a : same.arrays) a.move_to = {};
  return same;
}

}  // namespace hpe::spread
