#pragma once

/// The kernel that copies boxes of cells between a wave field and packed memory. The boxes hold the cells around a
/// model from which the wave field can be reconstructed.

#include <stdint.h>

#include "kernels/wave_parameters.h"

namespace hpe::kernels {

/// The largest number of boxes in a launch: one box for each side of a model.
inline constexpr int64_t most_boxes = 6;

/// Copies the cells of the boxes to `packed`, box after box, with z fastest; if `restore` is not 0, copies them from
/// `packed` back to the field. Boxes must be inside the grid and must not overlap. On soft devices, the tiles of a
/// launch divide the rows of each box among them; on GPUs, its threads divide the cells.
template <class T>
struct copy_boxes {
  T* packed;
  T* field;
  field_layout layout;
  window boxes[most_boxes];
  int64_t count;
  int32_t restore;
};

/// Returns the shape of a launch of copy_boxes for boxes of `cells` cells together.
[[nodiscard]] constexpr hpeShape boxes_shape(int64_t cells, bool soft) {
  constexpr int64_t cells_each = 4096, most = 2048;
  const int64_t tiles = (cells + cells_each - 1) / cells_each;
  return {{uint32_t(tiles < 1 ? 1 : tiles < most ? tiles : most), 1, 1}, {soft ? 1U : uint32_t(march_threads), 1, 1}};
}

}  // namespace hpe::kernels
