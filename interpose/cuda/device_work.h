#pragma once

#include <initializer_list>

#include "interpose/cuda/interposer.h"
#include "interpose/cuda/launch_scope.h"
#include "interpose/cuda/queuing_threads.h"

namespace hpe::cuda_hooks {

/// Held by a hook while it queues device work of the program. Costs two stores and a load where the host touches no
/// device memory.
class device_work {
 public:
  /// Work that may use any memory.
  device_work() : device_work(std::initializer_list<used_range>{}) {}
  /// Work that uses these ranges of device memory; others, of the host, are left out. None: any memory.
  device_work(std::initializer_list<used_range> ranges) : here_(queuing_threads::mine()) {
    queuing_threads::enter(here_);
    if (adopted_memory::any()) [[unlikely]]
      begin(ranges);
  }
  /// A kernel: any memory, or what its parameters point to, as HPE_SCOPE says.
  explicit device_work(const kernel_launch& launch) : here_(queuing_threads::mine()) {
    queuing_threads::enter(here_);
    if (adopted_memory::any()) [[unlikely]]
      begin(launch);
  }
  ~device_work() {
    if (begun_) [[unlikely]]
      end();
    queuing_threads::leave(here_);
  }
  device_work(const device_work&) = delete;
  device_work& operator=(const device_work&) = delete;

  /// Whether the work must not be queued, and what to tell the program.
  [[nodiscard]] bool failed() const noexcept { return result_ != CUDA_SUCCESS; }
  [[nodiscard]] CUresult result() const noexcept { return result_; }

 private:
  void begin(std::initializer_list<used_range> ranges);
  void begin(const kernel_launch& launch);
  void end() noexcept;

  queuing_threads::place& here_;
  bool begun_ = false;
  CUresult result_ = CUDA_SUCCESS;
};

}  // namespace hpe::cuda_hooks
