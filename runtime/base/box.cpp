#include "runtime/base/box.h"

#include <algorithm>

namespace hpe {

namespace {

// Returns how many of `count` items fit into `most` bytes if each has `each` bytes and begins `step` bytes after the
// one before.
std::size_t fitting(std::size_t count, std::size_t each, std::size_t step, std::size_t most) noexcept {
  if (each > most) return 0;
  return step == 0 ? count : std::min(count, 1 + (most - each) / step);
}

// Advances `at` by `step`. If `at` reaches `end`, sets it to 0 and returns false.
bool advance(std::size_t& at, std::size_t step, std::size_t end) noexcept {
  at = end - at > step ? at + step : 0;
  return at != 0;
}

}  // namespace

box box::joined() const noexcept {
  const box_copy both = box_copy{extent, strides, strides}.joined();
  return {both.extent, both.to};
}

box_copy box_copy::joined() const noexcept {
  box_copy result = *this;
  box_extent& e = result.extent;
  if (e.bytes() == 0 || e.bytes() == too_many_bytes) return result;
  const auto planes_become_rows = [&] {
    e.rows = e.planes;
    e.planes = 1;
    result.to.row = result.to.plane;
    result.from.row = result.from.plane;
  };
  const auto planes_continue_rows = [&](const box_strides& s) { return s.plane == saturated_product(s.row, e.rows); };
  if (e.rows == 1) planes_become_rows();
  if (e.planes > 1 && planes_continue_rows(result.to) && planes_continue_rows(result.from)) {
    e.rows *= e.planes;
    e.planes = 1;
  }
  while (e.rows > 1 && result.to.row == e.width && result.from.row == e.width) {
    e.width *= e.rows;
    planes_become_rows();
  }
  return result;
}

box_parts::box_parts(const box_extent& whole, std::span<const box_strides> sides, std::size_t most)
    : whole_(whole), step_(whole) {
  std::size_t planes = whole.planes, rows = whole.rows;
  for (const box_strides& each : sides) {
    const box plane{{whole.width, whole.rows, 1}, each};
    planes = std::min(planes, fitting(whole.planes, plane.span(), each.plane, most));
    rows = std::min(rows, fitting(whole.rows, whole.width, each.row, most));
  }
  step_.planes = std::max<std::size_t>(planes, 1);
  if (planes == 0) step_.rows = std::max<std::size_t>(rows, 1);
  if (planes == 0 && rows == 0) step_.width = most;
}

std::optional<box_part> box_parts::next() noexcept {
  if (whole_.is_empty()) return std::nullopt;
  box_part part = at_;
  part.extent = {std::min(step_.width, whole_.width - at_.x), std::min(step_.rows, whole_.rows - at_.y),
                 std::min(step_.planes, whole_.planes - at_.z)};
  if (!advance(at_.x, step_.width, whole_.width) && !advance(at_.y, step_.rows, whole_.rows) &&
      !advance(at_.z, step_.planes, whole_.planes))
    whole_ = {};
  return part;
}

}  // namespace hpe
