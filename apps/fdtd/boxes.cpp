#include "apps/fdtd/boxes.h"

#include <algorithm>

namespace hpe::fdtd {

namespace {

// A range of cells, as two arrays that are indexed by the number of an axis.
struct bounds {
  triple low, high;

  [[nodiscard]] kernels::cell_range range() const { return {low[0], high[0], low[1], high[1], low[2], high[2]}; }
};

std::size_t axis_of(int side) { return static_cast<std::size_t>(side / 2); }
bool is_upper(int side) { return side % 2 == 1; }

}  // namespace

triple arrange(int devices, cut how) {
  triple parts{1, 1, 1};
  std::int64_t left = devices;
  const int axes = how == cut::slabs ? 1 : (how == cut::pencils ? 2 : 3);
  for (int i = 0; i < axes; ++i) {
    // Finds the smallest divisor of `left` that is at least the (others + 1)-th root of `left`.
    const int others = axes - i - 1;
    std::int64_t factor = left;
    for (std::int64_t f = left; f >= 1; --f) {
      std::int64_t power = 1;
      for (int k = 0; k <= others; ++k) power *= f;
      if (left % f == 0 && power >= left) factor = f;
    }
    parts[static_cast<std::size_t>(i)] = factor;
    left /= factor;
  }
  return parts;
}

kernels::cell_range box::face(int side) const {
  bounds b{{0, 0, 0}, cells};
  const std::size_t axis = axis_of(side);
  if (is_upper(side))
    b.low[axis] = cells[axis] - layout.radius;
  else
    b.high[axis] = layout.radius;
  return b.range();
}

kernels::cell_range box::rim(int side) const {
  bounds b{{0, 0, 0}, cells};
  const std::size_t axis = axis_of(side);
  b.low[axis] = is_upper(side) ? cells[axis] : -layout.radius;
  b.high[axis] = b.low[axis] + layout.radius;
  return b.range();
}

std::vector<box> cut_grid(const triple& cells, std::int64_t radius, const triple& parts) {
  for (std::size_t axis = 0; axis < 3; ++axis)
    if (parts[axis] > 1 && cells[axis] / parts[axis] < radius)
      throw bad_input(std::to_string(cells[axis]) + " cells along " + "xyz"[axis] + " in " +
                      std::to_string(parts[axis]) + " parts: each part needs at least " + std::to_string(radius) +
                      " cells for a stencil of order " + std::to_string(2 * radius));
  std::vector<box> boxes;
  for (std::int64_t i = 0; i < parts[0]; ++i)
    for (std::int64_t j = 0; j < parts[1]; ++j)
      for (std::int64_t k = 0; k < parts[2]; ++k) {
        const triple place{i, j, k};
        const triple step{parts[1] * parts[2], parts[2], 1};
        box b{};
        b.device = static_cast<int>(boxes.size());
        for (std::size_t axis = 0; axis < 3; ++axis) {
          b.origin[axis] = cells[axis] * place[axis] / parts[axis];
          b.cells[axis] = cells[axis] * (place[axis] + 1) / parts[axis] - b.origin[axis];
          const std::size_t lower = 2 * axis, upper = lower + 1;
          b.neighbour[lower] = place[axis] > 0 ? b.device - static_cast<int>(step[axis]) : -1;
          b.neighbour[upper] = place[axis] + 1 < parts[axis] ? b.device + static_cast<int>(step[axis]) : -1;
        }
        b.layout = kernels::make_box_layout(b.cells[0], b.cells[1], b.cells[2], radius);
        boxes.push_back(b);
      }
  return boxes;
}

std::vector<box> in_one_memory(std::vector<box> boxes, const triple& cells) {
  for (box& b : boxes) {
    if (b.cells[1] != cells[1] || b.cells[2] != cells[2])
      throw bad_input(
          "direct exchange needs a grid that is cut into slabs, because each device must hold whole planes");
    b.layout = kernels::make_box_layout(cells[0], cells[1], cells[2], b.layout.radius);
    b.place = b.origin;
    b.neighbour.fill(-1);
  }
  return boxes;
}

order_of_work rims_first(const box& b) {
  // Along z, each range begins at a multiple of `vector` cells, because the kernels require this.
  constexpr std::int64_t vector = 16;
  order_of_work work;
  bounds left{{0, 0, 0}, b.cells};
  for (int side = 0; side < sides; ++side) {
    if (b.neighbour[static_cast<std::size_t>(side)] < 0) continue;
    const std::size_t axis = axis_of(side);
    const std::int64_t unit = axis == 2 ? vector : 1;
    bounds rim = left;
    if (is_upper(side)) {
      rim.low[axis] = (b.cells[axis] - b.layout.radius) / unit * unit;
      left.high[axis] = rim.low[axis];
    } else {
      rim.high[axis] = (b.layout.radius + unit - 1) / unit * unit;
      left.low[axis] = rim.high[axis];
    }
    // If no cells are between the rims, `first` contains all cells of the box.
    if (left.low[axis] >= left.high[axis]) return {{b.all()}, {}};
    work.first.push_back(rim.range());
  }
  work.then.push_back(left.range());
  return work;
}

}  // namespace hpe::fdtd
