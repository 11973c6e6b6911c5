#pragma once

/// The references for gather and scatter, of elements of 8 bytes.

#include <cstdint>

#include "kernels/gather.h"

namespace hpe::bench {

/// The parameters of a gather or a scatter. Lengths are numbers of elements.
struct movement {
  kernels::gather_way way;
  std::uint32_t index;  ///< bytes of an index
  std::uint64_t* table;
  std::uint64_t table_count;
  const void* indices;
  std::uint64_t* values;
  std::uint64_t count;
};

/// Whether this build has Thrust.
[[nodiscard]] bool thrust_there();
/// Queues thrust::gather or thrust::scatter on a GPU and returns.
void by_thrust(int device, const movement& m);
/// Queues a kernel of one line, in which each thread moves one element, and returns.
void by_plain_kernel(int device, const movement& m);

/// Runs a plain loop in `threads` threads, each with an equal part, and returns when all are done.
void by_loop(unsigned threads, const movement& m);
/// Does the same by oneTBB's parallel_for.
void by_tbb(unsigned threads, const movement& m);

}  // namespace hpe::bench
