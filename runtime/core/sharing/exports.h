#pragma once

#include <map>
#include <optional>

#include "runtime/base/thread_safety.h"
#include "runtime/core/memory/allocator.h"
#include "runtime/node/exporter.h"

namespace hpe::core {

/// Memory of this process that other processes read: hpeExportBegin and hpeExportEnd. Thread-safe.
///
/// Other processes read the copy at the home. begin() brings it up to date, as for a kernel that reads it, and waits.
/// While bytes of an allocation are exported, the allocation is neither freed nor moved.
class exports {
 public:
  exports(const work::resources& with, const memory::uvas& space, allocator& memory, node::exporter& others)
      : with_(with), space_(space), memory_(memory), others_(others) {}

  node::handle begin(const void* p, std::size_t bytes);
  void end(const node::handle& h);

  struct range {
    const std::byte* base = nullptr;
    std::size_t bytes = 0;
  };
  /// The bytes that a handle of this process names; empty if it is another process's, or the export has ended.
  [[nodiscard]] std::optional<range> find(const node::handle& h) const;

 private:
  struct live_export {
    coherence::region* region = nullptr;
    coherence::byte_range object;  // the allocation
    range bytes;
  };

  node::memory_description describe(const coherence::region& r);
  [[nodiscard]] std::optional<live_export> live(const node::handle& h) const;
  /// Ends an export, whatever other processes did with the bytes. Returns false if it had ended already.
  bool forget(const node::handle& h) noexcept;

  const work::resources with_;
  const memory::uvas& space_;
  allocator& memory_;
  node::exporter& others_;
  mutable mutex mutex_;
  std::map<std::uint64_t, live_export> exported_ HPE_GUARDED_BY(mutex_);  // by token
};

}  // namespace hpe::core
