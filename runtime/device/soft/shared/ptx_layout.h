#pragma once

/// The properties of a PTX module that both the owner and the devices use: its texts in a memory file, and the
/// positions of its variables in the module's parts (ptx_part).

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/device/device_ptx_module.h"
#include "runtime/os/file_descriptor.h"
#include "runtime/ptx/program/image.h"

namespace hpe::device::soft {

struct ptx_layout {
  struct place_in_part {
    ptx_part part = ptx_part::global;
    bool is_there = false;  // false: the variable is in shared memory, or empty
    std::size_t offset = 0;
  };
  std::vector<place_in_part> places;  // the position of each symbol of the program, in the program's order
  std::array<std::size_t, ptx_part_count> bytes{};  // the size of each part in bytes

  [[nodiscard]] std::vector<std::uint64_t> addresses(const ptx_addresses& parts) const;
};

[[nodiscard]] ptx_layout lay_out(const ptx::program& program);

/// pack_texts writes texts into a new memory file and stores the file's size in `bytes`. unpack_texts reads the texts.
[[nodiscard]] os::file_descriptor pack_texts(const std::vector<std::string>& texts, std::size_t& bytes);
[[nodiscard]] std::vector<std::string> unpack_texts(int file, std::size_t bytes);

}  // namespace hpe::device::soft
