#pragma once

/// The copy engine of a device process.

#include "runtime/device/soft/shared/fabric.h"
#include "runtime/device/soft/softd/memory.h"

namespace hpe::device::soft {

class copy_engine {
 public:
  copy_engine(unsigned device, fabric& shared, address_space& memory)
      : device_(device), shared_(shared), memory_(memory) {}

  /// Addresses are those of the program. A copy over links with a limit takes the time of the links, and pieces of
  /// copies with a more urgent level go first. Throws hpe::error.
  void copy(std::uintptr_t destination, std::uintptr_t source, std::size_t bytes, priority level) const;
  void fill(std::uintptr_t destination, std::uint8_t value, std::size_t bytes) const;

 private:
  [[nodiscard]] address_table::piece find(std::uintptr_t address) const;

  unsigned device_;
  fabric& shared_;
  address_space& memory_;
};

}  // namespace hpe::device::soft
