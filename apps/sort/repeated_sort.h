#pragma once

#include <memory>

#include "apps/sort/local_sort.h"

namespace hpe::sort {

/// Runs local sorts on one GPU, ordered like launches of hpe. To queue the dozen kernels and fills of a sort takes the
/// host 45 to 75 us, during which the next GPU would wait. Therefore, a sort of the same range as the previous sort is
/// recorded as a CUDA graph, which can be queued again in 2 us. Only one thread at a time may use an object.
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
