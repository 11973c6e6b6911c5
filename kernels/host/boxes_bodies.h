#pragma once

/// The body for soft devices of the kernel of kernels/copy_boxes.h.

#include "kernels/copy_boxes.h"
#include "kernels/host/wave_bodies.h"

namespace {

template <class T>
void run(const copy_boxes<T>& p, const hpeTiles& tiles) {
  const auto all = static_cast<int64_t>(tiles.grid[0]);
  T* packed = p.packed;
  for (int64_t b = 0; b < p.count; ++b) {
    const window& box = p.boxes[b];
    const int64_t rows = box.nx * box.ny;
    for (int64_t r = rows * int64_t(tiles.begin) / all; r < rows * int64_t(tiles.end) / all; ++r) {
      T* const kept = packed + r * box.nz;
      T* const cells = p.field + p.layout.index(box.x + r / box.ny, box.y + r % box.ny, box.z);
      const T* const from = p.restore ? kept : cells;
      T* const to = p.restore ? cells : kept;
      for (int64_t i = 0; i < box.nz; ++i) to[i] = from[i];
    }
    packed += rows * box.nz;
  }
}

}  // namespace
