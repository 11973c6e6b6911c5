#pragma once

/// The record of the accesses of kernels, in a device (HPE_CHECK; runtime/ptx/build/access_recording.h).

#include <array>
#include <functional>
#include <vector>

#include "runtime/device/soft/shared/recorded_accesses.h"
#include "runtime/os/file_descriptor.h"
#include "runtime/os/virtual_memory.h"

namespace hpe::device::soft {

/// Kernels write the record while they run; collect() reads and clears it.
class recorded_memory {
 public:
  /// Reserves the addresses of the record. Call this before the process has many mappings. Throws
  /// HPE_ERROR_INITIALIZATION if the addresses are not free.
  recorded_memory(const uvas_layout& layout, os::file_descriptor file);
  [[nodiscard]] bool contains(std::uint64_t address) const noexcept;

  /// Runs work(n) for each n < count, possibly in several threads, and returns when all calls have ended.
  using run_function = std::function<void(std::size_t count, const std::function<void(std::size_t)>& work)>;
  /// Appends the recorded accesses to the log and clears the record. Call this when a grid has ended and no kernel
  /// runs. `pairs`: which accesses of two blocks are a race; null: blocks are not compared. `others`: further races.
  void collect(const ptx::site_pairs* pairs, std::vector<recorded_race> others, const run_function& run);

 private:
  struct part;
  class page_scan;
  using page = std::array<std::uint8_t, 4096>;

  [[nodiscard]] std::vector<part> find_parts() const;
  [[nodiscard]] page& page_at(const part& what, std::size_t layer, std::uint64_t number) const;
  void scan(part& what, const ptx::site_pairs* pairs) const;
  void free_idle(const std::vector<part>& parts) const;

  ptx::record_places places_;
  os::file_descriptor file_;
  os::reservation space_;
  access_log log_;
};

}  // namespace hpe::device::soft
