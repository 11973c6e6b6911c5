#pragma once

/// Records work that functions of the program queue, by CUDA's stream capture. So the functions run under no lock of
/// hpe: no work runs before hpe has the locks and launches the graph.

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/device/cuda/driver.h"
#include "runtime/device/device.h"

namespace hpe::device::cuda {

class cuda_device;
class cuda_stream;

/// The streams of one GPU on which hpe records work. Each stream belongs to one recording at a time, and runs what it
/// has recorded, so that libraries may order the reuse of their memory by this stream. Thread-safe.
class work_recorder {
 public:
  explicit work_recorder(cuda_device& device, const driver& cu) : device_(device), cu_(cu) {}

  /// See device::record.
  [[nodiscard]] std::unique_ptr<recorded_work> record(const std::function<int(void*)>& function);

  /// Returns a stream that no other recording uses. The caller gives it back.
  [[nodiscard]] cuda_stream& take();
  void give_back(cuda_stream& unused) noexcept;

 private:
  /// Calls the function while the stream is captured, and returns the graph.
  [[nodiscard]] CUgraph capture(CUstream stream, const std::function<int(void*)>& function);

  cuda_device& device_;
  const driver& cu_;
  std::mutex mutex_;
  std::vector<cuda_stream*> unused_;  // guarded by mutex_
  std::size_t made_ = 0;              // the number of streams that were made so far; guarded by mutex_
};

}  // namespace hpe::device::cuda
