#pragma once

/// The interface by which the wrappers of MPI's functions tell the check of a program (HPE_CHECK) which buffers a call
/// uses, and until when. interpose/check/message_uses.h implements the interface.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "hpe/hpe.h"

namespace hpe::interpose {

class HPE_API message_checks {
 public:
  struct buffer {
    const void* begin = nullptr;
    std::size_t bytes = 0;
    bool is_written = false;
  };

  message_checks() = default;
  message_checks(const message_checks&) = delete;
  message_checks& operator=(const message_checks&) = delete;
  virtual ~message_checks() = default;

  /// MPI begins to use buffers: during a call, or from a call on. Returns a number for end().
  [[nodiscard]] virtual std::uint64_t begin(const char* function, std::span<const buffer> buffers) = 0;
  /// MPI no longer uses the buffers. `is_new`: the program learns that now, so it may not have changed bytes that MPI
  /// has read.
  virtual void end(std::uint64_t use, bool is_new) = 0;
  /// Between enter() and leave(), the calling thread is in a function of MPI, which may access all pending buffers.
  virtual void enter() noexcept = 0;
  virtual void leave() noexcept = 0;

  /// Returns the object of the process; null if the program is not checked.
  [[nodiscard]] static message_checks* of_process() noexcept { return the_instance.load(std::memory_order_acquire); }

 protected:
  /// Makes of_process() return this object, which must exist until the process ends.
  void start() noexcept { the_instance.store(this, std::memory_order_release); }

 private:
  static std::atomic<message_checks*> the_instance;
};

}  // namespace hpe::interpose
