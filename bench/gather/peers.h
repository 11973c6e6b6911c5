#pragma once

/// The references with which gather and scatter of 8-byte elements are compared.

#include <cstdint>

#include "kernels/gather.h"

namespace hpe::bench {

/// The parameters of a gather or a scatter. The lengths table_count and count are numbers of elements.
struct movement {
  kernels::gather_way way;
  std::uint32_t index;  ///< size of an index in bytes
  std::uint64_t* table;
  std::uint64_t table_count;
  const void* indices;
  std::uint64_t* values;
  std::uint64_t count;
};

/// Whether this build contains Thrust.
[[nodiscard]] bool thrust_there();
/// Queues thrust::gather or thrust::scatter on a GPU and returns.
void by_thrust(int device, const movement& m);
/// Queues a kernel of one line, in which each thread moves one element, on a GPU and returns.
void by_plain_kernel(int device, const movement& m);

/// Runs a plain loop in `threads` threads, each of which moves an equal number of elements; returns when all threads
/// are done.
void by_loop(unsigned threads, const movement& m);
/// Runs the loop by oneTBB's parallel_for with `threads` threads; returns when it is done.
void by_tbb(unsigned threads, const movement& m);

}  // namespace hpe::bench
