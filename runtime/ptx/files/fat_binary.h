#pragma once

/// Fat binaries, which nvcc puts into programs: containers with code for several architectures.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hpe::ptx {

struct fat_binary_entry {
  enum class kind : std::uint8_t { ptx = 1, cubin = 2, other = 0 };
  kind what = kind::other;
  std::uint32_t architecture = 0;  // 90 for compute_90
  std::string text;                // PTX text, decompressed
};

/// Reads a container (magic 0xba55ed50) or a registration wrapper (magic 0x466243b1), which points to a container in
/// memory. PTX is decompressed; cubins are listed without their code. `bytes` bounds a container; the container of a
/// wrapper gives its own size.
///
/// Throws HPE_ERROR_INVALID_ARGUMENT if the data is neither of the two, is truncated, or cannot be decompressed.
[[nodiscard]] std::vector<fat_binary_entry> read_fat_binary(const void* data, std::size_t bytes);

/// The PTX for the newest architecture among the entries. Throws HPE_ERROR_NOT_SUPPORTED, with the nvcc option to use,
/// if there is none.
[[nodiscard]] const fat_binary_entry& choose_ptx(const std::vector<fat_binary_entry>& entries);

}  // namespace hpe::ptx
