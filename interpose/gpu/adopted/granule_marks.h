#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/os/virtual_memory.h"

namespace hpe::cuda_hooks {

/// A bit for each granule (2 MiB) of the process's address space; the driver allocates address space in units of this
/// size. The owner of the object sets the bits of the granules that contain the memory recorded by the owner. has()
/// takes no lock and may be called in signal handlers; callers must serialise calls of set().
class granule_marks {
 public:
  granule_marks();

  [[nodiscard]] bool has(std::uint64_t address) const noexcept {
    const std::uint64_t granule = address >> granule_bits;
    return granule < granules && (word(granule).load(std::memory_order_relaxed) >> granule % 64 & 1) != 0;
  }
  void set(std::uint64_t begin, std::uint64_t end, bool on) noexcept;

  static constexpr unsigned granule_bits = 21;

 private:
  static constexpr std::uint64_t granules = std::uint64_t{1} << (47 - granule_bits);

  [[nodiscard]] std::atomic<std::uint64_t>& word(std::uint64_t granule) const noexcept {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(bits_.data())[granule / 64];
  }

  os::file_descriptor file_;
  os::reservation bits_;  // 8 MiB of address space; the system allocates each page at its first use
};

}  // namespace hpe::cuda_hooks
