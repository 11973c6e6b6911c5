#pragma once

/// Where the variables of a module of PTX lie in its parts of memory. The owner and the devices find the same.

#include "runtime/device/ptx_module.h"
#include "runtime/ptx/image.h"

namespace hpe::device::soft {

struct ptx_layout {
  struct place {
    ptx_part part = ptx_part::global;
    bool is_there = false;  // false: shared, or empty
    std::size_t offset = 0;
  };
  std::vector<place> places;                        // by symbol of the program
  std::array<std::size_t, ptx_part_count> bytes{};  // by part

  [[nodiscard]] std::vector<std::uint64_t> addresses(const ptx_addresses& parts) const;
};

[[nodiscard]] ptx_layout lay_out(const ptx::program& program);

}  // namespace hpe::device::soft
