#pragma once

/// The kernel that copies boxes of cells between a wave field and packed memory: the state around a model that a
/// reconstruction of the field needs.

#include <stdint.h>

#include "kernels/wave.h"

namespace hpe::kernels {

/// The sides of a box.
inline constexpr int64_t most_boxes = 6;

/// packed = the cells of the boxes, one box behind the other with z fastest; or, with `restore`, the reverse. Boxes lie
/// in the grid and do not overlap. Tiles and threads share the rows of each box.
template <class T>
struct copy_boxes {
  T* packed;
  T* field;
  field_layout layout;
  window boxes[most_boxes];
  int64_t count;
  int32_t restore;
};

/// The shape of a launch of copy_boxes over so many cells.
[[nodiscard]] constexpr hpeShape boxes_shape(int64_t cells, bool soft) {
  constexpr int64_t cells_each = 4096, most = 2048;
  const int64_t tiles = (cells + cells_each - 1) / cells_each;
  return {{uint32_t(tiles < 1 ? 1 : tiles < most ? tiles : most), 1, 1}, {soft ? 1U : uint32_t(march_threads), 1, 1}};
}

}  // namespace hpe::kernels
