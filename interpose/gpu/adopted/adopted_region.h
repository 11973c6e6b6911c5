#pragma once

#include <algorithm>
#include <memory>

#include "interpose/gpu/work/context_parts.h"
#include "runtime/coherence/block_states.h"
#include "runtime/coherence/read_ahead.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/os/file_descriptor.h"
#include "runtime/os/virtual_memory.h"

namespace hpe::cuda_hooks {

/// A range of device memory that the program allocated through the driver and that CPU code has touched. A region
/// consists of a view (a CPU mapping over the driver's own reservation, at the device address), a shadow (host memory
/// that contains the host copy of the data), and a state for each block. The runtime accesses the shadow through a
/// second mapping, the alias. A region covers whole pages, so it may contain several small allocations. Not thread
/// safe.
class adopted_region {
 public:
  static constexpr std::size_t block_bytes = std::size_t{2} << 20;

  /// The driver must have mapped [begin, end), and nothing else may be mapped there. hpe copies the region's bytes in
  /// the context of `parts`. Throws hpe::error if the mapping fails.
  adopted_region(CUdeviceptr begin, CUdeviceptr end, std::shared_ptr<context_parts> parts);
  ~adopted_region();
  /// To be called before the program frees the memory. Removes the view permanently and restores the driver's
  /// reservation.
  void close() noexcept;
  adopted_region(const adopted_region&) = delete;
  adopted_region& operator=(const adopted_region&) = delete;

  [[nodiscard]] CUdeviceptr begin() const noexcept { return begin_; }
  [[nodiscard]] CUdeviceptr end() const noexcept { return end_; }
  [[nodiscard]] context_parts& parts() const noexcept { return *parts_; }
  /// The address at which the runtime accesses the host copy of a byte.
  [[nodiscard]] std::byte* alias(CUdeviceptr address) const noexcept { return alias_.data() + (address - begin_); }

  [[nodiscard]] std::uint64_t block_of(CUdeviceptr address) const noexcept { return (address - begin_) / block_bytes; }
  [[nodiscard]] coherence::block_run all_blocks() const noexcept { return {0, states_.count()}; }
  struct bytes {
    CUdeviceptr begin;
    CUdeviceptr end;
  };
  [[nodiscard]] bytes bytes_of(coherence::block_run run) const noexcept;

  [[nodiscard]] coherence::block_state state(std::uint64_t block) const noexcept { return states_[block]; }
  /// Changes the states of blocks (see coherence::block_states). All state changes go through this function.
  void transition(coherence::block_run run, coherence::block_event event) noexcept { states_.transition(run, event); }
  /// Whether any block is not in state device. The view of such a block may be open, host memory may contain newer
  /// bytes, or hpe is fetching the block.
  [[nodiscard]] bool in_use() const noexcept { return states_.off_device() != 0; }
  /// Returns the longest run of blocks from `block` on, with an end of at most `limit`, that all have the state of
  /// `block`.
  [[nodiscard]] coherence::block_run run_from(std::uint64_t block, std::uint64_t limit) const noexcept {
    return states_.same_from(block, limit);
  }

  void protect(coherence::block_run run, os::page_protection allowed);

  /// To be called before bytes are copied to host memory. Allocates the host pages for these bytes. When the bytes
  /// copied to host memory so far exceed the size of the region for the first time, also pins the region's host pages,
  /// unless the region is smaller than a block or the pages would exceed the limit of the process. The context of the
  /// region must be current. Affects only speed.
  void prepare_pages(const device::cuda::driver& cu, bytes range);

  /// Calls visit(begin, end) for each of the program's allocations in a range, but not for gaps between allocations.
  /// Throws hpe::error if the driver cannot find the allocations, for example because the device is lost.
  template <class Visit>
  void for_each_allocation(const device::cuda::driver& cu, bytes range, Visit visit) const {
    constexpr std::size_t driver_alignment = 512;  // allocations never share an aligned unit of this size
    for (CUdeviceptr at = range.begin; at < range.end;) {
      CUdeviceptr base = 0;
      std::size_t size = 0;
      CUresult found = cu.cuMemGetAddressRange(&base, &size, at);
      // Any other error may come from earlier device work and does not show whether the address is in device memory, so
      // the query is repeated once. After the loss of the device, it fails again.
      const auto is_gap = [&] { return found == CUDA_ERROR_INVALID_VALUE || found == CUDA_ERROR_NOT_FOUND; };
      if (found != CUDA_SUCCESS && !is_gap()) found = cu.cuMemGetAddressRange(&base, &size, at);
      if (found != CUDA_SUCCESS && !is_gap()) cu.fail(found, "looking for the allocation at an address");
      if (found != CUDA_SUCCESS) {
        at = (at / driver_alignment + 1) * driver_alignment;
        continue;
      }
      const CUdeviceptr end = std::min(range.end, base + size);
      visit(at, end);
      at = end;
    }
  }

  /// Adds the number of copied bytes to the profile and to the counters of `hpe top`.
  void tell_moved(std::size_t bytes, bool to_device) const;

  coherence::read_ahead ahead;
  bool in_motion = false;  ///< whether a thread is fetching bytes of the region with adopted_memory's mutex unlocked

 private:
  void pin(const device::cuda::driver& cu);

  const CUdeviceptr begin_;
  const CUdeviceptr end_;
  const std::shared_ptr<context_parts> parts_;
  os::file_descriptor shadow_;
  os::reservation alias_;
  coherence::block_states states_;
  std::uint64_t arrived_ = 0;                        // the number of bytes passed to prepare_pages so far
  const device::cuda::driver* pinned_by_ = nullptr;  // the driver through which the pages were pinned
  bool pin_tried_ = false;
  bool closed_ = false;
};

}  // namespace hpe::cuda_hooks
