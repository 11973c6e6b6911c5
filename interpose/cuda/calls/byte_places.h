#pragma once

/// The addresses of the bytes on one side of a copy, for the kernels of copy_kernels.cu. Plain data, which nvcc
/// compiles.

namespace hpe::cuda_hooks {

/// Contiguous bytes of an element.
struct byte_piece {
  unsigned long long first;  ///< bytes of data of the element before this piece
  long long offset;          ///< of the piece, from the element's address
};

/// Rows of bytes at equal distances, and planes of these rows. With pieces, each row is an element that consists of
/// them.
struct byte_places {
  unsigned long long base;   ///< address of the first row
  unsigned long long row;    ///< bytes from one row to the next
  unsigned long long plane;  ///< bytes from one plane to the next
  const byte_piece* pieces;  ///< in device memory, by `first`, and one more that ends the last; nullptr: one run
  unsigned piece_count;
  unsigned rows;        ///< rows in a plane
  unsigned width;       ///< units in a row
  unsigned unused = 0;  // in place of padding: the stand-in driver reads the parameters as words
};

}  // namespace hpe::cuda_hooks
