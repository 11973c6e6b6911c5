#pragma once

#include "interpose/cuda/spread/spreading.h"
#include "interpose/cuda/work/queuing_threads.h"

namespace hpe::cuda_hooks {

/// Held by a hook while the program's device work is queued, which writes memory: tells it to a program that is spread
/// over GPUs, behind the driver's call.
class noted_write {
 public:
  /// Work that may write any memory.
  explicit noted_write(CUstream stream) noexcept : stream_(stream) {}
  /// Work that writes the allocation at an address.
  noted_write(CUstream stream, CUdeviceptr address) noexcept : stream_(stream), address_(address), anything_(false) {}
  ~noted_write() {
    if (spreading* const s = spreading::active()) [[unlikely]]
      tell(*s);
  }
  noted_write(const noted_write&) = delete;
  noted_write& operator=(const noted_write&) = delete;

 private:
  void tell(spreading& s) const {
    CUstream const stream = stream_ == unknown_stream() ? nullptr : stream_;
    anything_ ? s.writes_anything(stream) : s.writes(address_, stream);
  }

  CUstream stream_;
  CUdeviceptr address_ = 0;
  bool anything_ = true;
};

}  // namespace hpe::cuda_hooks
