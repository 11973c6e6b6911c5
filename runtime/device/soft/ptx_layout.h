#pragma once

/// Where the variables of a module of PTX lie in its two parts of memory. The owner and the devices find the same.

#include "runtime/device/ptx_module.h"
#include "runtime/ptx/image.h"

namespace hpe::device::soft {

struct ptx_layout {
  struct place {
    ptx_part part = ptx_part::global;
    bool is_there = false;  // false: shared, or empty
    std::size_t offset = 0;
  };
  std::vector<place> places;  // by symbol of the program
  std::size_t global_bytes = 0;
  std::size_t constant_bytes = 0;

  [[nodiscard]] std::vector<std::uint64_t> addresses(std::uintptr_t globals, std::uintptr_t constants) const;
};

[[nodiscard]] ptx_layout lay_out(const ptx::program& program);

}  // namespace hpe::device::soft
