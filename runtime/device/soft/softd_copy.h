#pragma once

/// The copy engine of a device process.

#include "runtime/device/soft/fabric.h"
#include "runtime/device/soft/softd_memory.h"

namespace hpe::device::soft {

class softd_copier {
 public:
  softd_copier(unsigned device, fabric& shared, softd_memory& memory)
      : device_(device), state_(shared.state()), memory_(memory) {}

  /// Addresses are the program's. What travels over links with a limit takes its time, and pieces of copies
  /// with a more urgent level go first. Throws hpe::error.
  void copy(std::uintptr_t destination, std::uintptr_t source, std::size_t bytes, priority level) const;
  void fill(std::uintptr_t destination, std::uint8_t value, std::size_t bytes) const;

 private:
  [[nodiscard]] address_table::piece find(std::uintptr_t address) const;

  unsigned device_;
  fabric_state& state_;
  softd_memory& memory_;
};

}  // namespace hpe::device::soft
