#pragma once

#include <driver_types.h>

#include <memory>
#include <vector>

#include "interpose/soft/cudart/device/handle_table.h"
#include "interpose/soft/cudart/stream/cudart_stream.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cudart {

/// The default stream to which handle 0 refers: the legacy default stream or, in programs compiled with
/// --default-stream per-thread, the thread's default stream (these programs call the functions with the suffix _ptsz or
/// _ptds).
enum class default_stream { legacy, per_thread };

/// Maps the program's handles to streams of all devices. Thread safe.
class stream_table {
 public:
  explicit stream_table(int devices, announce_work announce = {});

  /// Returns the stream for a handle; null if the handle was never created or has been destroyed. The handles of
  /// default streams refer to the default streams of `device`.
  std::shared_ptr<cudart_stream> find(cudaStream_t handle, int device, default_stream zero = default_stream::legacy);

  cudaStream_t create(int device, unsigned flags, int priority);
  bool destroy(cudaStream_t handle);  ///< returns false for a default stream or an invalid handle; queued work runs

  device_streams& of_device(int device);

  /// For cudaDeviceReset: removes all streams of a device and clears the device's sticky error. Work that is already
  /// queued runs.
  void reset(int device);

 private:
  const announce_work announce_;
  mutable shared_mutex mutex_;
  std::vector<std::unique_ptr<device_streams>> devices_ HPE_GUARDED_BY(mutex_);
  handle_table<cudaStream_t, cudart_stream, cudaErrorInvalidResourceHandle> created_;
};

}  // namespace hpe::cudart
