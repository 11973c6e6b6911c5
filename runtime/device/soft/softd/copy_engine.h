#pragma once

/// The copy engine of a device process: runs the commands that copy, fill and compare memory.

#include "runtime/device/soft/shared/fabric.h"
#include "runtime/device/soft/softd/memory.h"
#include "runtime/device/soft/softd/tile_pool.h"

namespace hpe::device::soft {

class copy_engine {
 public:
  /// The threads of `pool` divide a copy of more than 512 KiB among themselves if the copy uses no link with a limit.
  copy_engine(unsigned device, fabric& shared, address_space& memory, tile_pool& pool)
      : device_(device), shared_(shared), memory_(memory), pool_(pool) {}

  /// Copies bytes between addresses of the program, which this process may have mapped elsewhere. A copy over links
  /// with a limit takes as long as these links need, and copies with a more urgent `level` use the links first. Throws
  /// hpe::error if an address is not mapped or the copy crashes.
  void copy(std::uintptr_t destination, std::uintptr_t source, std::size_t bytes, priority level) const;
  void fill(std::uintptr_t destination, std::uint8_t value, std::size_t bytes) const;
  void take_fingerprint(std::uintptr_t result, std::uintptr_t source, std::size_t bytes,
                        const fingerprint_key& key) const;

 private:
  [[nodiscard]] address_table::backed_range find(std::uintptr_t address) const;
  void copy_together(void* destination, const void* source, std::size_t bytes, bool through_caches) const;

  unsigned device_;
  fabric& shared_;
  address_space& memory_;
  tile_pool& pool_;
};

}  // namespace hpe::device::soft
