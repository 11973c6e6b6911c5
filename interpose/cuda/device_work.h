#pragma once

#include <initializer_list>

#include "interpose/cuda/interposer.h"

namespace hpe::cuda_hooks {

/// Held by a hook while it queues device work of the program. Costs a load where the host touches no device memory.
class device_work {
 public:
  /// Work that may use any memory.
  device_work() {
    if (adopted_memory::any()) [[unlikely]]
      result_ = begin({});
  }
  /// Work that uses these ranges of device memory; others, of the host, are left out.
  device_work(std::initializer_list<used_range> ranges) {
    if (adopted_memory::any()) [[unlikely]]
      result_ = begin(ranges);
  }
  ~device_work() {
    if (begun_) [[unlikely]]
      end();
  }
  device_work(const device_work&) = delete;
  device_work& operator=(const device_work&) = delete;

  /// Whether the work must not be queued, and what to tell the program.
  [[nodiscard]] bool failed() const noexcept { return result_ != CUDA_SUCCESS; }
  [[nodiscard]] CUresult result() const noexcept { return result_; }

 private:
  CUresult begin(std::initializer_list<used_range> ranges);
  void end() noexcept;

  bool begun_ = false;
  CUresult result_ = CUDA_SUCCESS;
};

}  // namespace hpe::cuda_hooks
