#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "runtime/base/thread_safety.h"
#include "runtime/check/order.h"

namespace hpe::cudart {

/// Counts how many tasks of a stream's work have finished. The tasks are numbered from 1, in stream order. Derived
/// classes represent work of other processes. Thread safe.
class stream_timeline {
 public:
  stream_timeline() = default;
  virtual ~stream_timeline() = default;
  stream_timeline(const stream_timeline&) = delete;
  stream_timeline& operator=(const stream_timeline&) = delete;

  virtual std::uint64_t finished() const { return finished_.load(std::memory_order_acquire); }
  virtual void wait(std::uint64_t position) const;
  void advance();  ///< to be called by the stream's thread when one more task has finished

 private:
  std::atomic<std::uint64_t> finished_{0};
  mutable mutex mutex_;
  mutable condition_variable changed_;
};

/// A position in the work of one stream. A point is reached when all work up to its position has finished. A point may
/// outlive its stream. A default-constructed point is always reached.
struct point {
  std::shared_ptr<const stream_timeline> line;
  std::uint64_t position = 0;
  check::past_ptr past{};  ///< what is ordered before the point, for the checker; null if that is not known

  bool reached() const { return !line || line->finished() >= position; }
  void wait() const {
    if (!reached()) line->wait(position);
  }
};

}  // namespace hpe::cudart
