#pragma once

/// Describes copies for the kernels of copy_kernels.cu. The header contains only plain structures, so that nvcc can
/// compile it.

namespace hpe::cuda_hooks {

/// A run of contiguous bytes in an element.
struct byte_run {
  unsigned long long first;  ///< the number of data bytes of the element that come before this run
  long long offset;          ///< distance in bytes from the element's address to the run
};

/// The bytes on one side of a copy: planes at equal distances, which consist of rows of bytes at equal distances. If
/// `runs` is not null, each row is an element that consists of these runs.
struct byte_places {
  unsigned long long base;   ///< address of the first row
  unsigned long long row;    ///< bytes from one row to the next
  unsigned long long plane;  ///< bytes from one plane to the next
  /// In device memory, ordered by `first`, followed by an end mark; nullptr: each row is contiguous.
  const byte_run* runs;
  unsigned run_count;
  unsigned rows;        ///< rows in each plane
  unsigned width;       ///< units in each row
  unsigned unused = 0;  // avoids padding, because the stand-in driver reads the parameters as words
};

/// A copy in units of 1 << unit_log bytes, at addresses that are multiples of this size.
struct unit_copy {
  byte_places to, from;
  unsigned units;  ///< fewer than 2^31
  unsigned unit_log;
  unsigned in_a_thread;  ///< the number of units that a thread copies in each step
  unsigned blocks;       ///< the number of thread blocks that the copy can use
};

/// The copies of one launch, in the 4 KiB that the parameters of a kernel may have. No copy uses bytes that another one
/// writes.
struct unit_copies {
  static constexpr unsigned most = 32;
  unit_copy each[most];
};

}  // namespace hpe::cuda_hooks
