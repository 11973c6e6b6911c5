#include "runtime/spread/grid_cut.h"

#include <algorithm>
#include <cstddef>

namespace hpe::spread {

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

std::size_t part_of(const cut& c, const dimension& block) {
  for (std::size_t d = 0; d < c.parts.size(); ++d)
    if (c.parts[d].contains(block)) return d;
  return 0;
}

}  // namespace hpe::spread
