#pragma once

#include <cuda.h>

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/device/cuda/cuda_stream.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/device/device.h"

namespace hpe::cuda_hooks {

/// Owns the hpe streams that represent streams of the program, and the events with which one stream waits for another.
/// Thread-safe.
class beside_streams {
 public:
  beside_streams(const device::cuda::driver& cu, device::device_set& devices) : cu_(cu), devices_(devices) {}

  /// of() returns the hpe stream on a device that represents a stream of the program until the program's stream is
  /// destroyed. is_own: whether the program's stream is in the device's primary context, and its handle always means
  /// the same stream. If so, work on the hpe stream normally counts as finished when it finishes on the program's
  /// stream (cuda_stream::ends_on). Otherwise the hpe stream waits for the program's stream; if the program has many
  /// streams, one hpe stream represents several of them. If `program` is null, the hpe stream represents all streams
  /// that are not known.
  struct stand_in {
    device::stream* stream = nullptr;
    // `stream` if its work finishes on the program's stream; otherwise null.
    device::cuda::cuda_stream* ends_there = nullptr;
    unsigned stands_for = 0;   // the number of program streams that this stream represents
    std::uint64_t chosen = 0;  // changes when the stream begins to represent a stream of the program
  };
  [[nodiscard]] stand_in of(unsigned device, CUstream program, bool is_own);
  /// Returns the result of an earlier of(device, program, true) if it is still valid; otherwise an empty object.
  [[nodiscard]] stand_in own_of(unsigned device, CUstream program);
  /// To be called before the program's stream is destroyed.
  void ends(CUstream program) noexcept;
  /// To be called before the driver destroys a context that the program has created. The driver also destroys the
  /// context's events, so this function only removes them from the list.
  void ends(CUcontext context) noexcept;
  /// Ends the open commands (cuda_stream) of all hpe streams; waits for threads that may be opening a command.
  void end_open() noexcept;
  /// Calls cuda_stream::divide() for the hpe streams of one stream of the program and of those that the division
  /// delays, or, without a stream, for all hpe streams.
  void divide(std::optional<CUstream> program, device::cuda::division where) noexcept;

  /// Makes all later work on stream `later` wait for the work that is queued on stream `earlier` so far. Returns the
  /// driver's result.
  CUresult follow(CUstream later, CUcontext of_later, CUstream earlier, CUcontext of_earlier);

 private:
  static constexpr std::size_t most_streams = 32;  // limit for each pair of device and `is_own`
  [[nodiscard]] stand_in* choose(unsigned device, bool is_own) HPE_REQUIRES(mutex_);
  /// Calls visit(stream), without mutex_, for each hpe stream whose work ends on this stream of the program, or,
  /// without a stream, on any stream of the program.
  template <class Visit>
  void each_own(std::optional<CUstream> program, const Visit& visit) noexcept;
  /// Whether a stream of the program, other than CU_STREAM_LEGACY, never waits for the legacy stream.
  [[nodiscard]] bool is_non_blocking(CUstream program) const noexcept;
  CUresult take(CUcontext context, CUevent& event) noexcept;
  void give_back(CUcontext context, CUevent event) noexcept;

  const device::cuda::driver& cu_;
  device::device_set& devices_;
  mutex mutex_;
  std::map<std::pair<unsigned, bool>, std::deque<stand_in>> made_ HPE_GUARDED_BY(mutex_);
  std::map<std::tuple<CUstream, unsigned, bool>, stand_in*> chosen_ HPE_GUARDED_BY(mutex_);
  std::uint64_t choices_ HPE_GUARDED_BY(mutex_) = 0;                         // the latest value of stand_in::chosen
  std::map<CUcontext, std::vector<CUevent>> events_ HPE_GUARDED_BY(mutex_);  // events that no thread is recording
};

}  // namespace hpe::cuda_hooks
