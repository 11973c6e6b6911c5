#pragma once

/// What scans are measured against.

#include <cstddef>
#include <cstdint>

namespace hpe::bench {

/// Queues a copy within the memory of a GPU as the CUDA runtime makes it, in the order of hpe; where there is no
/// toolkit, as hpe makes it.
void device_copy(int device, void* output, const void* input, std::size_t bytes);

/// CUB's inclusive sum over device memory of one GPU, on hpe arrays, queued in the order of hpe.
class cub_sum {
 public:
  /// Whether this build has it.
  static bool there();
  /// For problems of length elements; every run treats all of them, by one call for each.
  cub_sum(int device, std::uint64_t length, std::uint64_t problems);
  ~cub_sum();
  cub_sum(const cub_sum&) = delete;
  cub_sum& operator=(const cub_sum&) = delete;
  void run(const std::int32_t* input, std::int32_t* output);

 private:
  struct state;
  state* state_;
};

/// oneTBB's parallel_scan with `threads` threads: inclusive sums.
template <class T>
void tbb_sum(unsigned threads, const T* input, T* output, std::uint64_t count);

}  // namespace hpe::bench
