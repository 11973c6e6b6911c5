#pragma once

/// The bodies for soft devices of the kernels for compressed wave fields (kernels/wave_parameters.h).

#include <string.h>

#include "kernels/host/wave_bodies.h"

namespace {

/// The addresses of the ranges and of the integers of a compressed row.
template <class T, class Byte>
struct compressed_parts {
  Byte* ranges;
  Byte* integers;

  compressed_parts(Byte* row, int64_t nz)
      : ranges(row), integers(row + (nz + block_cells - 1) / block_cells * int64_t(sizeof(block_range<T>))) {}
};

/// Calls block(first cell, number of cells, address of the range, address of the integers) for each block of a row.
template <class T, class Byte, class Block>
void for_blocks(Byte* row, int64_t nz, int64_t bits, Block block) {
  const compressed_parts<T, Byte> parts(row, nz);
  for (int64_t i = 0; i < nz; i += block_cells)
    block(i, least(block_cells, nz - i), parts.ranges + i / block_cells * int64_t(sizeof(block_range<T>)),
          parts.integers + i * bits / 8);
}

template <class T>
void compress_block(const T* cells, int64_t count, int64_t bits, uint8_t* range, uint8_t* integers) {
  T lowest = cells[0], largest = cells[0];
  for (int64_t i = 1; i < count; ++i) {
    lowest = cells[i] < lowest ? cells[i] : lowest;
    largest = cells[i] > largest ? cells[i] : largest;
  }
  const auto levels = static_cast<int32_t>((1 << bits) - 1);
  const bool both_signs = lowest < 0 && largest > 0;
  const T step = (largest - lowest) / T(both_signs ? levels - 1 : levels);
  // The inverse of a step below 1e-37 could be infinite.
  const T inverse = step > T(1e-37) ? 1 / step : T(0);
  const block_range<T> r{both_signs ? -step * T(static_cast<int32_t>(-lowest * inverse + T(0.5))) : lowest, step};
  int32_t q[block_cells] = {};
  for (int64_t i = 0; i < count; ++i) {
    const auto rounded = static_cast<int32_t>((cells[i] - r.least) * inverse + T(0.5));
    q[i] = rounded < levels ? rounded : levels;
  }
  memcpy(range, &r, sizeof r);
  if (bits == 4)
    for (int64_t i = 0; i < block_cells / 2; ++i) integers[i] = static_cast<uint8_t>(q[2 * i] | q[2 * i + 1] << 4);
  else if (bits == 8)
    for (int64_t i = 0; i < block_cells; ++i) integers[i] = static_cast<uint8_t>(q[i]);
  else
    for (int64_t i = 0; i < block_cells; ++i) {
      integers[2 * i] = static_cast<uint8_t>(q[i]);
      integers[2 * i + 1] = static_cast<uint8_t>(q[i] >> 8);
    }
}

template <class T>
void decompress_block(const uint8_t* range, const uint8_t* integers, int64_t bits, T* cells) {
  block_range<T> r;
  memcpy(&r, range, sizeof r);
  for (int64_t i = 0; i < block_cells; ++i) {
    const int32_t q = bits == 4   ? integers[i / 2] >> (i % 2 * 4) & 15
                      : bits == 8 ? integers[i]
                                  : integers[2 * i] | integers[2 * i + 1] << 8;
    cells[i] = multiply_add(r.step, T(q), r.least);
  }
}

template <class T>
void run(const keep_compressed<T>& p, const hpeTiles& tiles) {
  const int64_t nz = p.cells.nz, bytes = compressed_row<T>(nz, p.bits);
  for_rows(p, tiles, [&](int64_t packed, int64_t cell) {
    for_blocks<T>(p.kept + packed / nz * bytes, nz, p.bits,
                  [&](int64_t first, int64_t count, uint8_t* range, uint8_t* integers) {
                    compress_block(p.field + cell + first, count, p.bits, range, integers);
                  });
  });
}

template <class T>
void run(const correlate_compressed<T>& p, const hpeTiles& tiles) {
  const int64_t nz = p.cells.nz, bytes = compressed_row<T>(nz, p.bits);
  for_rows(p, tiles, [&](int64_t packed, int64_t cell) {
    for_blocks<T>(p.kept + packed / nz * bytes, nz, p.bits,
                  [&](int64_t first, int64_t count, const uint8_t* range, const uint8_t* integers) {
                    T kept[block_cells];
                    decompress_block(range, integers, p.bits, kept);
                    T* __restrict image = p.image + packed + first;
                    T* __restrict illumination = p.illumination + packed + first;
                    const T* field = p.field + cell + first;
                    for (int64_t i = 0; i < count; ++i) {
                      image[i] = multiply_add(kept[i], field[i], image[i]);
                      illumination[i] = multiply_add(kept[i], kept[i], illumination[i]);
                    }
                  });
  });
}

}  // namespace
