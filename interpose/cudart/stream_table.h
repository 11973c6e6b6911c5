#pragma once

#include <driver_types.h>

#include <memory>
#include <shared_mutex>
#include <vector>

#include "interpose/cudart/handle_table.h"
#include "interpose/cudart/stream.h"

namespace hpe::cudart {

/// What handle 0 means: the legacy default stream, or the thread's in programs compiled with
/// --default-stream per-thread (they call the entries with _ptsz and _ptds).
enum class default_stream { legacy, per_thread };

/// From the handles of a program to streams, over all devices. Thread safe.
class stream_table {
 public:
  explicit stream_table(int devices);

  /// The stream of a handle; null for one that was never made or is destroyed (cudaErrorInvalidResourceHandle). Default
  /// streams are those of the device given.
  std::shared_ptr<stream> find(cudaStream_t handle, int device, default_stream zero = default_stream::legacy);

  cudaStream_t create(int device, unsigned flags, int priority);
  bool destroy(cudaStream_t handle);  ///< false if there is no such stream, or it is a default one; work goes on

  device_streams& of_device(int device);

  /// Forgets all streams of a device, and its sticky error (cudaDeviceReset). Work goes on.
  void reset(int device);

 private:
  mutable std::shared_mutex mutex_;
  std::vector<std::unique_ptr<device_streams>> devices_;
  handle_table<cudaStream_t, stream, cudaErrorInvalidResourceHandle> created_;
};

}  // namespace hpe::cudart
