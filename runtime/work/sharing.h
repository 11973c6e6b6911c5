#pragma once

/// How other processes use the memory of regions: through exports, which core::exports begins and ends.
///
/// Each byte of a region's memory is in one of three states:
///   - Private: hpe has not made the byte known to any other process.
///   - Known: other processes may have mapped the byte for copies, but they no longer use it: no export names its part
///     (coherence::shared_parts), and no process has the part open. After forget(), hpe may evict the byte from device
///     memory or move it.
///   - Held: an export names bytes of its part, or a process has some of them open. The byte keeps its home and its
///     device memory.
///
/// A process that opens bytes writes them at their home. If bytes have been open at any time after the host's copy
/// became valid, this copy may be stale; see_writes() drops it. hpe calls see_writes() when an export begins or ends,
/// and before known bytes leave their device memory. Bytes can be opened only while an export names them.

#include <functional>
#include <utility>
#include <vector>

#include "runtime/coherence/region.h"
#include "runtime/node/exporter.h"
#include "runtime/work/block_copies.h"

namespace hpe::work {

/// Thread-safe.
class sharing {
 public:
  explicit sharing(node::exporter& others) : others_(others) {}

  /// Whether a part that overlaps the bytes is held.
  [[nodiscard]] bool holds(const coherence::region& r, coherence::byte_range bytes) const HPE_REQUIRES(r.mutex);

  /// Whether other processes may have written any of the bytes since the last see_writes() of these bytes. True as long
  /// as a process has some of the bytes open.
  [[nodiscard]] bool may_be_written(const coherence::region& r, coherence::byte_range bytes) const
      HPE_REQUIRES(r.mutex);

  /// If other processes may have written any of the bytes, makes the home's copy of the bytes the only valid copy,
  /// except in blocks in state host, which CPU code of this process has written. Throws HPE_ERROR_SYSTEM if the
  /// operating system allows no more mappings; the bytes then still count as written by other processes.
  void see_writes(const resources& with, coherence::region& r, coherence::byte_range bytes) HPE_REQUIRES(r.mutex);

  /// Makes the parts that contain some of the bytes private, except parts that are held. Keeps the bytes that other
  /// processes have written to these parts (see_writes), and makes the processes unmap the parts. Throws as
  /// see_writes() does.
  void forget(const resources& with, coherence::region& r, coherence::byte_range bytes) HPE_REQUIRES(r.mutex);

  /// Handles the messages of other processes that closed memory before the call. Call this, without locks, before work
  /// is refused because bytes are held. Returns false if nothing can have changed.
  bool settle() { return others_.settle(); }

  /// Calls `last` as soon as no other process has any of the bytes open: at once, or later in another thread. None of
  /// the bytes may be exported. If when_closed throws, `last` is not called.
  void when_closed(const coherence::region& r, coherence::byte_range bytes, const std::function<void()>& last) const
      HPE_EXCLUDES(r.mutex);

  /// A prepared release of a region's memory, for end().
  class ending {
   public:
    ending() = default;
    /// Prepares the release while the region is alive, because this allocates memory. `give_back` frees the region's
    /// memory.
    ending(const coherence::region& r, std::function<void()> give_back) HPE_REQUIRES(r.mutex);

   private:
    friend class sharing;
    std::vector<std::pair<std::uint64_t, std::function<void()>>> parts_;  // memories, and the functions to call for
                                                                          // them; each function runs once
    std::function<void()> give_back_;                                     // called if there are no parts
  };
  /// Releases the memory of a region that has ended: makes other processes unmap the memory, and calls `give_back` when
  /// no process has the memory open, either at once or later in another thread.
  void end(ending&& prepared) const noexcept;

 private:
  [[nodiscard]] bool is_held(const coherence::shared_parts::exported_part& part) const;

  node::exporter& others_;
};

}  // namespace hpe::work
