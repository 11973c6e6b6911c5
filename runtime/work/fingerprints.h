#pragma once

/// Finds out whether work that may write memory has changed it. For a kernel of a CUDA program of which hpe knows only
/// the machine code, hpe cannot know which of its arguments the kernel writes. So a device takes the fingerprint of
/// each piece of such a program's data when the piece comes in, and again before it goes out. If both are the same, the
/// host's copy is still valid, and the piece is not copied to the host. The check of launches (HPE_CHECK) finds kernels
/// that change memory which they may only read.

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/log.h"
#include "runtime/base/thread_safety.h"
#include "runtime/coherence/region.h"
#include "runtime/device/device.h"
#include "runtime/os/file_descriptor.h"

namespace hpe::work {

/// Thread-safe. Two objects must not take fingerprints on a device at the same time (device::stream::take_fingerprint).
class fingerprints {
 public:
  /// If no fingerprints can be taken, the object writes `without`, with the reason, to the log.
  fingerprints(device::device_set& devices, log_level level, std::string without);
  fingerprints(const fingerprints&) = delete;
  fingerprints& operator=(const fingerprints&) = delete;
  ~fingerprints();

  /// Queues the computation of the fingerprint of some bytes of a home, after the writers of these bytes and after
  /// `behind`, and records it as a reader. Returns nullopt if the computation cannot be queued; then this object
  /// computes no further fingerprints. `bytes`: a multiple of device::fingerprint_unit that begins at such a multiple,
  /// or fewer bytes, which are their own fingerprint. There is no fingerprint of other ranges.
  [[nodiscard]] std::optional<coherence::piece_fingerprint> take(unsigned home, coherence::region& r,
                                                                 coherence::byte_range bytes, timepoint behind = {})
      HPE_REQUIRES(r.mutex);
  /// Whether both fingerprints were computed and are the same. Their timepoints must be reached.
  [[nodiscard]] bool are_same(const coherence::piece_fingerprint& a, const coherence::piece_fingerprint& b) const;

 private:
  class results;

  device::stream& stream_of(unsigned home);

  device::device_set& devices_;
  const log_level level_;
  const std::string without_;
  mutex making_;
  // By device; created by the first fingerprint of the device.
  std::vector<device::stream*> streams_ HPE_GUARDED_BY(making_);
  std::once_flag results_made_;
  std::shared_ptr<results> results_;  // created by the first fingerprint
  std::atomic<bool> work_{true};
};

}  // namespace hpe::work
