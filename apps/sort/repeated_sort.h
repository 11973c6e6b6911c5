#pragma once

#include <memory>

#include "apps/sort/local_sort.h"

namespace hpe::sort {

/// The local sorts of one GPU, in hpe's order. What one puts on its stream, a dozen kernels and fills, takes the host
/// 45 to 75 us, for which the next GPU would wait. So when the same range is sorted a second time in turn, it is
/// recorded as a graph of CUDA, and from then on it takes 2 us. One thread at a time.
class repeated_sort {
 public:
  /// `how` outlives it.
  explicit repeated_sort(const local_sort& how);
  ~repeated_sort();
  repeated_sort(repeated_sort&&) noexcept;

  /// Queues the sort and returns. Throws hpe::error.
  void run(const local_range& range);

 private:
  class recording;
  std::unique_ptr<recording> recording_;
};

}  // namespace hpe::sort
