#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>

#include "runtime/base/thread_safety.h"
#include "runtime/core/memory/allocator.h"
#include "runtime/core/operations/copier.h"
#include "runtime/core/sharing/exports.h"
#include "runtime/memory/segment_allocator.h"
#include "runtime/node/peer.h"

namespace hpe::core {

/// Reads and opens memory of other processes: hpeExportReachable, hpeExportCopy and hpeExportOpen. Thread-safe.
///
/// The first copy from an allocation of another process maps the whole allocation for this process's devices. Up to
/// `most_kept` mapped allocations are kept for later copies; beyond this number, the least recently used one is
/// dropped. The functions of this class also drop the allocations that other processes have freed and, with one check
/// in 100 ms, the allocations of processes that have ended.
class imports {
 public:
  /// foreign: the addresses for memory of other processes.
  imports(const work::resources& with, const memory::uvas& space, allocator& memory, copier& copies, exports& own,
          node::neighbours& others, memory::segment_allocator& foreign);
  ~imports();

  [[nodiscard]] bool reachable(const hpeExport& handle);
  void copy(void* destination, const hpeExport& handle, std::size_t offset, std::size_t bytes);
  [[nodiscard]] std::byte* open(const hpeExport& handle);

 private:
  class imported_memory;  // one allocation of another process, mapped by this process
  struct kept {
    std::shared_ptr<const imported_memory> memory;
    std::uint64_t used = 0;  // the value of uses_ when the memory was last used
  };
  using key = std::pair<node::process_key, std::uint64_t>;  // the other process, and its number for the memory

  static constexpr std::size_t most_kept = 64;

  std::shared_ptr<const imported_memory> find(const node::handle& h, node::peer& from, std::uint64_t memory);
  void drop_ended();
  /// Copies bytes that this process reads at `source`, and waits until the copy is complete.
  void copy_here(void* destination, const std::byte* source, std::size_t bytes);
  void copy_to_homes(const allocation& to, std::uint64_t begin, const imported_memory& from, std::uint64_t source,
                     std::size_t bytes);
  void copy_to_host(std::byte* to, const imported_memory& from, std::uint64_t source, std::size_t bytes);
  /// Returns the first device that is not lost and can reach the memory. Throws HPE_ERROR_DEVICE_LOST if all devices
  /// that could reach it are lost.
  [[nodiscard]] unsigned reader_of(const imported_memory& from) const;
  void copy_in(void* destination, const imported_memory& from, std::uint64_t source, std::size_t bytes);

  const work::resources with_;
  const memory::uvas& space_;
  allocator& memory_;
  copier& copies_;
  exports& own_;
  node::neighbours& others_;
  memory::segment_allocator& segment_;

  mutex mutex_;
  std::map<key, kept> kept_ HPE_GUARDED_BY(mutex_);
  std::uint64_t uses_ HPE_GUARDED_BY(mutex_) = 0;
  std::chrono::steady_clock::time_point next_look_ HPE_GUARDED_BY(mutex_){};
};

}  // namespace hpe::core
