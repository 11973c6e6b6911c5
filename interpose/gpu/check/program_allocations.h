#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "interpose/gpu/hooks/program_steps.h"
#include "runtime/base/box.h"
#include "runtime/base/thread_safety.h"
#include "runtime/check/checker.h"
#include "runtime/check/host_watch.h"
#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

/// The memory of a program that is checked: tells the checker of allocations and frees, and knows which memory CPU code
/// can read. Thread-safe.
class program_allocations {
 public:
  /// Both arguments must outlive the object.
  program_allocations(check::checker& to, const device::cuda::driver& cu) : checker_(to), cu_(cu) {}

  /// `by`: the work that allocates in the order of a stream; its `work` is null for an allocation at once.
  void add(const program_memory& made, const check::operation_run& by);
  /// Likewise; returns false if the program has not allocated the memory.
  bool remove(CUdeviceptr base, const check::operation_run& by);

  /// The memory of a context, or of a device's primary context, ends.
  void remove_all(CUcontext of, const check::operation_run& by);
  void remove_all(CUdevice of, const check::operation_run& by);

  /// Removes, from the accesses of a launch, those to bytes outside of the allocation to which their pointer points,
  /// and returns them, with the address of this allocation. An access whose pointer points elsewhere remains: programs
  /// that count from 1 pass the address before an array.
  [[nodiscard]] std::vector<std::pair<check::access_range, CUdeviceptr>> take_outside(
      std::vector<check::access_range>& accesses, const std::vector<CUdeviceptr>& pointers) const;

  /// Memory of the host is pageable if the driver does not know it; otherwise it is pinned, registered or managed.
  enum class place : std::uint8_t { device, host, pageable };
  [[nodiscard]] place place_of(CUdeviceptr address) const;
  /// Whether the program has allocated or registered the memory, and CPU code can use it. Does not ask the driver.
  [[nodiscard]] bool is_of_host(CUdeviceptr address) const;
  /// Whether the page of the host that contains an address can be watched. Does not ask the driver.
  [[nodiscard]] bool has_pages_of_host(CUdeviceptr address) const;
  /// Whether a kernel may use memory of which the checker does not know: the driver knows the address.
  [[nodiscard]] static bool is_known_to(const device::cuda::driver& cu, CUdeviceptr address);
  /// Returns the memory of the host that accesses use, as far as its pages can be watched: of each allocation, the
  /// bytes from the first to the last one, once for each kind of use. To protect pages takes time, so of most large
  /// uses only the two ends are returned.
  [[nodiscard]] std::vector<check::host_watch::use_of_memory> host_memory_of(
      std::span<const check::access_range> accesses);
  /// Work whose accesses hpe does not know may have written the allocation at an address, or all memory.
  void set_written(CUdeviceptr address);
  void set_all_written();

 private:
  struct addresses {
    std::uintptr_t begin = 0, end = 0;
  };
  struct allocation {
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    program_memory::kind what{};
    bool is_fresh = false;         // whether some bytes may count as not written
    addresses watched;             // the part whose pages can be watched
    std::uint64_t large_uses = 0;  // of this part
  };
  template <class Value>
  void remove_with(CUpointer_attribute attribute, Value value, const check::operation_run& by);
  [[nodiscard]] std::vector<CUdeviceptr> bases() const;
  [[nodiscard]] std::optional<allocation> find(CUdeviceptr address) const;
  /// Whether one more large use of an allocation is to be watched whole.
  [[nodiscard]] bool is_watched_whole(CUdeviceptr base);
  [[nodiscard]] static addresses watched_part(const program_memory& made);

  check::checker& checker_;
  const device::cuda::driver& cu_;
  mutable mutex mutex_;
  std::map<CUdeviceptr, allocation> all_ HPE_GUARDED_BY(mutex_);
};

/// Returns the bytes of a box at an address as accesses.
[[nodiscard]] std::vector<check::access_range> accesses_of(CUdeviceptr begin, const box& shape, check::use how);

}  // namespace hpe::cuda_hooks
