#pragma once

#include <memory>

#include "apps/sort/local_sort.h"

namespace hpe::sort {

/// The local sorts of one GPU, in hpe's order. A sort queues a dozen kernels and fills, which takes the host 45 to 75
/// us; the next GPU would wait for it. So a sort of the same range as the last time is recorded as a CUDA graph, and
/// from then on queuing takes 2 us. One thread at a time.
class repeated_sort {
 public:
  /// `how` must outlive this object.
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
