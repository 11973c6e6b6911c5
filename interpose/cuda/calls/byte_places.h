#pragma once

/// Where the bytes of one side of a copy are, as the kernels of copy_kernels.cu read it. Plain data, for nvcc too.

namespace hpe::cuda_hooks {

/// Bytes of an element that lie together.
struct byte_piece {
  unsigned long long first;  ///< how many bytes of the element come before them
  long long offset;          ///< where they are, from the element's address
};

/// Rows of bytes at equal distances, and planes of such rows. With pieces, each row is an element that these make up.
struct byte_places {
  unsigned long long base;   ///< address of the first row
  unsigned long long row;    ///< bytes from one row to the next
  unsigned long long plane;  ///< bytes from one plane to the next
  const byte_piece* pieces;  ///< in device memory, by `first`, with one more at the end of the element; or none
  unsigned piece_count;
  unsigned rows;        ///< in a plane
  unsigned width;       ///< units in a row
  unsigned unused = 0;  // instead of padding, whose bytes would be any
};

}  // namespace hpe::cuda_hooks
