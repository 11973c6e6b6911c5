#include "apps/fdtd/frame.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "apps/files/element_file.h"
#include "apps/pictures/picture.h"

namespace hpe::fdtd {

namespace {

/// From blue over white to red, as value goes from -1 to 1.
pictures::colour colour_of(double value) {
  const double rest = 255 * (1 - std::min(1.0, std::abs(value)));
  return value > 0 ? pictures::colour{255, rest, rest} : pictures::colour{rest, rest, 255};
}

}  // namespace

std::string name_of_frame(const std::string& name, std::int64_t step) { return fmt::format("{}-{:06}", name, step); }

void write_frame(const std::string& name, std::int64_t step, const triple& cells, const std::vector<float>& plane) {
  const std::string base = name_of_frame(name, step);
  files::write(base + ".npy", "f32", {static_cast<std::uint64_t>(cells[0]), static_cast<std::uint64_t>(cells[2])},
               plane.data(), sizeof(float));
  float largest = 0;
  for (const float v : plane) largest = std::max(largest, std::abs(v));
  if (largest == 0) largest = 1;
  // A cell of a small grid becomes several pixels; of a large grid, only every n-th cell is drawn.
  constexpr std::int64_t widest = 1200;
  const std::int64_t longest = std::max(cells[0], cells[2]);
  const std::int64_t pixels = std::max<std::int64_t>(1, std::min<std::int64_t>(4, widest / longest));
  const std::int64_t every = (longest + widest - 1) / widest;
  const std::int64_t across = (cells[0] + every - 1) / every * pixels, down = (cells[2] + every - 1) / every * pixels;
  constexpr std::int64_t below = 8;
  pictures::picture p(pictures::room_left + across + pictures::room_right, pictures::room_above + down + below);
  for (std::int64_t j = 0; j < down; ++j)
    for (std::int64_t i = 0; i < across; ++i) {
      const std::int64_t x = i / pixels * every, z = j / pixels * every;
      const float value = plane[static_cast<std::size_t>(x * cells[2] + z)];
      p.put(pictures::room_left + i, pictures::room_above + j, colour_of(static_cast<double>(value / largest)));
    }
  pictures::draw_axes(p, {pictures::room_left, pictures::room_above, across, down},
                      {static_cast<double>(every) / static_cast<double>(pixels), "cells"});
  pictures::write_png(base + ".png", p);
}

}  // namespace hpe::fdtd
