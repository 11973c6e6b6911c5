#pragma once

#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "interpose/cuda/spread/joined_gpus.h"

namespace hpe::cuda_hooks {

/// A stream of the program, and streams of its own on the other GPUs, on which parts of its launches run. Between two
/// launches the other GPUs' streams wait for the program's.
class program_lane {
 public:
  /// Throws hpe::error if the driver refuses.
  program_lane(const device::cuda::driver& cu, const joined_gpus& gpus, CUstream stream);
  ~program_lane();
  program_lane(const program_lane&) = delete;
  program_lane& operator=(const program_lane&) = delete;

  /// The stream on a GPU; the program's own on the first.
  [[nodiscard]] CUstream stream(unsigned gpu) const { return streams_[gpu]; }

  /// Lets the streams of other GPUs wait for the program's. To be called with the program's context current.
  CUresult fork();
  /// Notes how far the work on a GPU is. To be called with the GPU's context current, after its last piece of work.
  CUresult mark(unsigned gpu) { return cu_.cuEventRecord(done_[gpu], streams_[gpu]); }
  /// Lets a stream wait for the mark of a GPU.
  CUresult await(CUstream waiting, unsigned gpu) { return cu_.cuStreamWaitEvent(waiting, done_[gpu], 0); }

  /// The error of a part that failed, of which the program's GPU knows nothing.
  [[nodiscard]] CUresult failure() const;

  /// The program's stream has ended: no more work comes.
  void end() { ended_ = true; }
  /// Whether the stream has ended and all marked work is done.
  [[nodiscard]] bool is_over() const;

 private:
  const device::cuda::driver& cu_;
  const joined_gpus& gpus_;
  std::vector<CUstream> streams_;
  CUevent begin_ = nullptr;
  std::vector<CUevent> done_;
  bool ended_ = false;
};

/// The lanes of all streams. For one thread at a time.
class program_lanes {
 public:
  program_lanes(const device::cuda::driver& cu, const joined_gpus& gpus) : cu_(cu), gpus_(gpus) {}

  /// Made at the first call. Null if the stream belongs to another context than the first GPU's, which must be current.
  [[nodiscard]] std::shared_ptr<program_lane> of(CUstream stream);
  /// The stream is about to be destroyed, or is the calling thread's own, which is about to end.
  void forget(CUstream stream);
  void forget_all() { lanes_.clear(); }
  /// The first error of parts on other GPUs.
  [[nodiscard]] CUresult failure() const;

 private:
  using key = std::pair<CUstream, std::thread::id>;  // the thread of a stream that each thread has for itself
  [[nodiscard]] static key key_of(CUstream stream) {
    return {stream, stream == CU_STREAM_PER_THREAD ? std::this_thread::get_id() : std::thread::id()};
  }

  const device::cuda::driver& cu_;
  const joined_gpus& gpus_;
  std::map<key, std::shared_ptr<program_lane>> lanes_;
};

}  // namespace hpe::cuda_hooks
