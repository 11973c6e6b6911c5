#pragma once

#include <deque>

#include "runtime/transfer/engine.h"

namespace hpe::core {

/// Pieces on their way from devices to ordinary memory: while one staging buffer is emptied in the calling thread, the
/// next ones are being filled. Of one thread.
class arrivals {
 public:
  explicit arrivals(transfer::engine& engine) : engine_(engine) {}

  /// A buffer for the next piece, which comes from `home`, for which older ones may have to be emptied. May wait for
  /// others who have buffers; so the caller holds none but those that were added here, and no lock.
  [[nodiscard]] transfer::staged next_buffer(unsigned home);
  /// A copy from `home` to the start of the buffer is queued, of so many bytes, which belong at `into`.
  void add(unsigned home, transfer::staged&& buffer, std::byte* into, std::size_t bytes);
  /// Waits until all pieces are in place. Throws what went wrong with one of them.
  void finish();

 private:
  struct piece {
    unsigned home;
    transfer::staged buffer;
    std::byte* into;
    std::size_t bytes;
  };
  // Buffers that are being filled while one is emptied. With fewer the link idles: an H200 gave 64 MiB at 41 GB/s
  // through four buffers, and at 49 through eight.
  static constexpr std::size_t most = 7;

  void empty_oldest();

  transfer::engine& engine_;
  std::deque<piece> under_way_;
};

}  // namespace hpe::core
