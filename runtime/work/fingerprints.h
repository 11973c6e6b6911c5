#pragma once

/// Finds out whether work that may write memory has changed it. For a kernel of a CUDA program of which hpe knows only
/// the machine code, hpe cannot know which of its arguments the kernel writes. So a device takes the fingerprint of
/// each piece of such a program's data when the piece comes in, and again before it goes out. If both are the same, the
/// host's copy is still valid, and the piece is not copied to the host.

#include <memory>
#include <optional>
#include <vector>

#include "runtime/coherence/region.h"
#include "runtime/device/device.h"
#include "runtime/os/file_descriptor.h"

namespace hpe::work {

/// Only the thread that has the turn on a device (residency::turn) calls functions for this device.
class fingerprints {
 public:
  explicit fingerprints(device::device_set& devices);
  fingerprints(const fingerprints&) = delete;
  fingerprints& operator=(const fingerprints&) = delete;
  ~fingerprints();

  /// Queues the computation of the fingerprint of a piece, after the writers of its bytes, and records it as a reader.
  /// Returns nullopt if the computation cannot be queued; then this object computes no further fingerprints. `bytes`:
  /// the piece without the bytes behind the region's end.
  [[nodiscard]] std::optional<coherence::piece_fingerprint> take(unsigned home, coherence::region& r,
                                                                 coherence::byte_range bytes) HPE_REQUIRES(r.mutex);
  /// Whether both fingerprints were computed and are the same. Their timepoints must be reached.
  [[nodiscard]] bool are_same(const coherence::piece_fingerprint& a, const coherence::piece_fingerprint& b) const;

 private:
  class results;

  device::device_set& devices_;
  std::vector<device::stream*> streams_;  // by device; created by the first fingerprint of the device
  std::once_flag results_made_;
  std::shared_ptr<results> results_;  // created by the first fingerprint
  std::atomic<bool> work_{true};
};

}  // namespace hpe::work
