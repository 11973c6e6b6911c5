#pragma once

#include <deque>

#include "runtime/transfer/engine.h"

namespace hpe::core {

/// A copy from devices to ordinary memory, in chunks: while the calling thread empties one staging buffer, devices fill
/// the next ones. Used by one thread.
class arrivals {
 public:
  explicit arrivals(transfer::engine& engine) : engine_(engine) {}

  /// Returns a buffer for the next chunk, which will be copied from `home`. May empty the buffers of older chunks, and
  /// may wait until other threads return staging buffers. Therefore the caller must not hold a lock, nor any staging
  /// buffer except those that it has added to this object.
  [[nodiscard]] transfer::staged next_buffer(unsigned home);
  /// Adds a chunk. The caller has queued a copy of `bytes` bytes from `home` to the start of the buffer; finish() or
  /// next_buffer() later copies the bytes to `into`.
  void add(unsigned home, transfer::staged&& buffer, std::byte* into, std::size_t bytes);
  /// Copies all remaining chunks to their destinations. Throws the error of a chunk whose copy failed.
  void finish();

 private:
  struct arriving_chunk {
    unsigned home;
    transfer::staged buffer;
    std::byte* into;
    std::size_t bytes;
  };
  // The largest number of buffers that devices fill while the thread empties one. With fewer buffers the link idles: on
  // an H200, a copy of 64 MiB ran at 41 GB/s with four buffers and at 49 GB/s with eight.
  static constexpr std::size_t most = 7;

  void empty_oldest();

  transfer::engine& engine_;
  std::deque<arriving_chunk> under_way_;
};

}  // namespace hpe::core
