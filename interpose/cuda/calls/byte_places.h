#pragma once

/// The addresses of the bytes on one side of a copy, for the kernels of copy_kernels.cu. Plain data, which nvcc
/// compiles.

namespace hpe::cuda_hooks {

/// Rows of bytes at equal distances, and planes of these rows.
struct byte_places {
  unsigned long long base;   ///< address of the first row
  unsigned long long row;    ///< bytes from one row to the next
  unsigned long long plane;  ///< bytes from one plane to the next
  unsigned rows;             ///< rows in a plane
  unsigned width;            ///< units in a row
};

}  // namespace hpe::cuda_hooks
