#pragma once

#include <map>
#include <optional>

#include "runtime/base/thread_safety.h"
#include "runtime/core/memory/allocator.h"
#include "runtime/node/exporter.h"
#include "runtime/work/sharing.h"

namespace hpe::core {

/// Exports memory of this process to other processes: hpeExportBegin and hpeExportEnd. Thread-safe.
///
/// Other processes read the copy of the bytes that is at the home of these bytes (work::sharing). begin() makes that
/// copy valid, as for a kernel that reads the bytes, and waits until the copy is valid. After begin() or end(), this
/// process sees the bytes that other processes have written. While bytes of an allocation are exported, hpe neither
/// frees nor moves the allocation.
class exports {
 public:
  exports(const work::resources& with, const memory::uvas& space, allocator& memory, node::exporter& others,
          work::sharing& regions)
      : with_(with), space_(space), memory_(memory), others_(others), sharing_(regions) {}

  node::handle begin(const void* p, std::size_t bytes);
  void end(const node::handle& h);

  struct exported_bytes {
    const std::byte* base = nullptr;
    std::size_t bytes = 0;
  };
  /// Returns the bytes of a handle; nullopt if another process made the handle or the export has ended.
  [[nodiscard]] std::optional<exported_bytes> find(const node::handle& h) const;

 private:
  struct live_export {
    coherence::region* region = nullptr;
    std::uint64_t memory = 0;
    coherence::byte_range object;  // the allocation that contains the exported bytes
    exported_bytes bytes;
  };

  /// Returns the shared part of a region that contains `range`, whose bytes must have device memory. If no shared part
  /// contains the range, registers a new part with the exporter.
  const coherence::shared_parts::exported_part& part_around(coherence::region& r, coherence::byte_range range)
      HPE_REQUIRES(r.mutex);
  node::memory_description describe(const coherence::region& r, coherence::byte_range range);
  [[nodiscard]] std::optional<live_export> live(const node::handle& h) const;
  /// Ends an export. Does not make the writes of other processes visible. Returns false if the export had ended
  /// already.
  bool forget(const node::handle& h) noexcept;

  const work::resources with_;
  const memory::uvas& space_;
  allocator& memory_;
  node::exporter& others_;
  work::sharing& sharing_;
  mutable mutex mutex_;
  std::map<std::uint64_t, live_export> exported_ HPE_GUARDED_BY(mutex_);  // by token
};

}  // namespace hpe::core
