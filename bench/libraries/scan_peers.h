#pragma once

/// The references for hpe's scans: a copy, CUB and oneTBB.

#include <cstddef>
#include <cstdint>

namespace hpe::bench {

/// Queues a copy within the memory of a device as device work of hpe: by the CUDA runtime, or by hpe in builds without
/// the CUDA toolkit.
void device_copy(int device, void* output, const void* input, std::size_t bytes);

/// CUB's inclusive sum of hpe arrays in the memory of one GPU, queued as device work of hpe.
class cub_sum {
 public:
  /// Whether this build contains CUB.
  static bool there();
  /// length: the elements of a problem. problems: the number of problems. run() makes one call of CUB for each problem.
  cub_sum(int device, std::uint64_t length, std::uint64_t problems);
  ~cub_sum();
  cub_sum(const cub_sum&) = delete;
  cub_sum& operator=(const cub_sum&) = delete;
  void run(const std::int32_t* input, std::int32_t* output);

 private:
  struct state;
  state* state_;
};

/// Computes inclusive sums by oneTBB's parallel_scan with `threads` threads.
template <class T>
void tbb_sum(unsigned threads, const T* input, T* output, std::uint64_t count);

}  // namespace hpe::bench
