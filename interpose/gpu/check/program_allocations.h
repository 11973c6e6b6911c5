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

/// The memory of a program that is checked. Reports allocations and frees to the checker, and records which memory CPU
/// code can read. Thread-safe.
class program_allocations {
 public:
  /// Both arguments must outlive the object.
  program_allocations(check::checker& to, const device::cuda::driver& cu) : checker_(to), cu_(cu) {}

  /// `by`: the call that allocates. `by.work` is the work that allocates in the order of a stream; null for an
  /// allocation outside this order.
  void add(const program_memory& made, const check::operation_run& by);
  /// Likewise; returns false if the program has not allocated the memory.
  bool remove(CUdeviceptr base, const check::operation_run& by);

  /// Removes the memory of a context, or of a device's primary context.
  void remove_all(CUcontext of, const check::operation_run& by);
  void remove_all(CUdevice of, const check::operation_run& by);

  /// Divides the accesses of a launch: those inside the allocation to which their pointer points remain in `accesses`,
  /// and those outside of it are returned, with the address of the allocation. If none of a pointer's accesses is
  /// inside, all of them remain: programs that count from 1 pass the address before an array.
  [[nodiscard]] std::vector<std::pair<check::access_range, CUdeviceptr>> take_outside(
      std::vector<check::access_range>& accesses, const std::vector<CUdeviceptr>& pointers) const;

  /// pageable: memory that the driver does not know. host: pinned, registered or managed memory.
  enum class place : std::uint8_t { device, host, pageable };
  [[nodiscard]] place place_of(CUdeviceptr address) const;
  /// Whether the program has allocated or registered the memory, and CPU code can use it. Does not ask the driver.
  [[nodiscard]] bool is_of_host(CUdeviceptr address) const;
  /// Whether the page of the host that contains an address can be watched. Does not ask the driver.
  [[nodiscard]] bool has_pages_of_host(CUdeviceptr address) const;
  /// Whether the driver knows an address, so that a kernel may use the memory even if the checker does not know it.
  [[nodiscard]] static bool is_known_to(const device::cuda::driver& cu, CUdeviceptr address);
  /// Returns the host memory that accesses use, if its pages can be watched: for each allocation and each kind of use,
  /// the range from the first to the last byte. Because protecting pages takes time, returns only the two ends of most
  /// large ranges.
  [[nodiscard]] std::vector<check::host_watch::use_of_memory> host_memory_of(
      std::span<const check::access_range> accesses);
  /// Records that work whose accesses hpe does not know may have written the allocation at an address, or all memory.
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
    bool is_fresh = false;         // whether some bytes may not have been written
    addresses watched;             // the part whose pages can be watched
    std::uint64_t large_uses = 0;  // the number of large uses of this part
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
