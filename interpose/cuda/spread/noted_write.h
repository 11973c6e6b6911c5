#pragma once

#include <array>
#include <initializer_list>
#include <shared_mutex>

#include "interpose/cuda/adopted/adopted_memory.h"
#include "interpose/cuda/spread/spreading.h"
#include "interpose/cuda/work/queuing_threads.h"

namespace hpe::cuda_hooks {

/// Held while device work that writes memory of the program is queued, for a program that is spread over GPUs: arrays
/// keep their places meanwhile, and the writes are told when the driver has taken the work. Costs two comparisons in
/// other programs.
class noted_write {
 public:
  noted_write() = default;
  ~noted_write() {
    if (told_ != nullptr) [[unlikely]]
      tell();
  }
  noted_write(const noted_write&) = delete;
  noted_write& operator=(const noted_write&) = delete;

  /// The work is about to be queued on a stream, and uses these ranges; an empty list stands for any memory. The
  /// caller must not wait for another thread that begins a noted_write.
  void begin(CUstream stream, std::initializer_list<used_range> ranges) {
    if (spreading* const s = spreading::active()) [[unlikely]]
      begin(*s, stream, ranges);
  }
  /// The work is done when the caller's call returns, or its stream does not belong to the program.
  void on_unknown_stream() noexcept { stream_ = unknown_stream(); }

 private:
  void begin(spreading& told, CUstream stream, std::initializer_list<used_range> ranges);
  void tell();

  spreading* told_ = nullptr;
  std::shared_lock<std::shared_mutex> places_;
  CUstream stream_ = nullptr;
  bool anything_ = false;
  unsigned count_ = 0;
  std::array<CUdeviceptr, 2> written_{};  // addresses in the allocations
};

}  // namespace hpe::cuda_hooks
