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

/// Reads a container (magic 0xba55ed50) from at most `bytes` bytes. PTX is decompressed. Cubins are listed, but their
/// code is not returned.
///
/// Throws HPE_ERROR_INVALID_ARGUMENT if the data is not a container, is truncated, has an entry that reaches beyond the
/// size that the container states, or cannot be decompressed.
[[nodiscard]] std::vector<fat_binary_entry> read_fat_binary(const void* data, std::size_t bytes);

/// Like read_fat_binary, but takes the size from the container itself. `image` may also be a registration wrapper
/// (magic 0x466243b1), which points to a container. Reads only mapped memory.
[[nodiscard]] std::vector<fat_binary_entry> read_fat_binary_in_memory(const void* image);

/// Returns whether a container or a wrapper begins at `image`. Stops reading at the first byte that differs.
[[nodiscard]] bool begins_with_fat_binary(const char* image);

/// Returns the PTX for the newest architecture among the entries. Throws HPE_ERROR_NOT_SUPPORTED if no entry is PTX;
/// the message names the nvcc option to use.
[[nodiscard]] const fat_binary_entry& choose_ptx(const std::vector<fat_binary_entry>& entries);

}  // namespace hpe::ptx
