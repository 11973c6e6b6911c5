#pragma once

#include <deque>

#include "runtime/transfer/engine.h"

namespace hpe::core {

/// The pieces of a copy from devices to ordinary memory: while the calling thread empties one staging buffer, the next
/// ones are being filled. Used by one thread.
class arrivals {
 public:
  explicit arrivals(transfer::engine& engine) : engine_(engine) {}

  /// A buffer for the next piece, which comes from `home`. Older pieces may be emptied for it, and it may wait for
  /// other threads that have buffers. So the caller must hold no lock, and no buffer but those added here.
  [[nodiscard]] transfer::staged next_buffer(unsigned home);
  /// Adds a piece: `bytes` bytes, whose copy from `home` to the start of the buffer is queued; they belong at `into`.
  void add(unsigned home, transfer::staged&& buffer, std::byte* into, std::size_t bytes);
  /// Waits until all pieces are in place. Throws the error of a piece that failed.
  void finish();

 private:
  struct piece {
    unsigned home;
    transfer::staged buffer;
    std::byte* into;
    std::size_t bytes;
  };
  // The most buffers that are being filled while one is emptied. With fewer the link idles: an H200 gave 64 MiB at 41
  // GB/s through four buffers, and at 49 through eight.
  static constexpr std::size_t most = 7;

  void empty_oldest();

  transfer::engine& engine_;
  std::deque<piece> under_way_;
};

}  // namespace hpe::core
