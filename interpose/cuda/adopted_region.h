#pragma once

#include <vector>

#include "runtime/coherence/protocol.h"
#include "runtime/coherence/read_ahead.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/os/file_descriptor.h"
#include "runtime/os/virtual_memory.h"

namespace hpe::cuda_hooks {

/// A range of device memory that the program got from the driver and that the host has touched: its view, mapped over
/// the driver's own reservation at the same address, its shadow, and the states of its blocks. Whole pages, so memory
/// of several small allocations may lie in one. Not thread safe.
class adopted_region {
 public:
  static constexpr std::size_t block_bytes = std::size_t{2} << 20;

  /// [begin, end) is mapped by nobody but the driver. Throws what mapping throws.
  adopted_region(CUdeviceptr begin, CUdeviceptr end, CUcontext context);
  /// The view is gone, and the driver's reservation as it was.
  ~adopted_region();
  adopted_region(const adopted_region&) = delete;
  adopted_region& operator=(const adopted_region&) = delete;

  [[nodiscard]] CUdeviceptr begin() const noexcept { return begin_; }
  [[nodiscard]] CUdeviceptr end() const noexcept { return end_; }
  [[nodiscard]] CUcontext context() const noexcept { return context_; }
  [[nodiscard]] bool overlaps(CUdeviceptr from, CUdeviceptr to) const noexcept { return begin_ < to && from < end_; }
  /// Where the host's copy of a byte is, for the runtime.
  [[nodiscard]] std::byte* alias(CUdeviceptr address) const noexcept { return alias_.data() + (address - begin_); }

  [[nodiscard]] std::uint64_t block_of(CUdeviceptr address) const noexcept { return (address - begin_) / block_bytes; }
  [[nodiscard]] std::uint64_t block_count() const noexcept { return states_.size(); }
  struct bytes {
    CUdeviceptr begin;
    CUdeviceptr end;
  };
  [[nodiscard]] bytes bytes_of(coherence::block_run run) const noexcept;

  [[nodiscard]] coherence::block_state state(std::uint64_t block) const noexcept { return states_[block]; }
  void set_state(coherence::block_run run, coherence::block_state next) noexcept;
  /// Whether the host may have something that the device has not, or a view is open, or a fetch is under way.
  [[nodiscard]] bool in_use() const noexcept { return off_device_ != 0; }
  /// The neighbours of a block that are in its state, before `limit`.
  [[nodiscard]] coherence::block_run run_from(std::uint64_t block, std::uint64_t limit) const noexcept;

  void protect(coherence::block_run run, os::access allowed);

  coherence::read_ahead ahead;

 private:
  const CUdeviceptr begin_;
  const CUdeviceptr end_;
  const CUcontext context_;
  os::file_descriptor shadow_;
  os::reservation alias_;
  std::vector<coherence::block_state> states_;
  std::uint64_t off_device_ = 0;
};

}  // namespace hpe::cuda_hooks
