#pragma once

/// Where the bytes of one side of a copy are, as the kernels of copy_kernels.cu read it. Plain data, for nvcc too.

namespace hpe::cuda_hooks {

/// Rows of bytes at equal distances, and planes of such rows.
struct byte_places {
  unsigned long long base;   ///< address of the first row
  unsigned long long row;    ///< bytes from one row to the next
  unsigned long long plane;  ///< bytes from one plane to the next
  unsigned rows;             ///< in a plane
  unsigned width;            ///< units in a row
};

}  // namespace hpe::cuda_hooks
