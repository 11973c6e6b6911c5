#pragma once

/// Fat binaries: containers with code for several architectures, which nvcc writes into programs.

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
  bool is_empty = false;           // whether the entry is a cubin without functions; false for compressed cubins
};

/// Reads a container (magic 0xba55ed50) from at most `bytes` bytes and returns its entries. Decompresses PTX. The entry
/// of a cubin has no code.
///
/// Throws HPE_ERROR_INVALID_ARGUMENT if the bytes are not a container, if the container is truncated, if an entry
/// exceeds the container's size, or if PTX cannot be decompressed.
[[nodiscard]] std::vector<fat_binary_entry> read_fat_binary(const void* data, std::size_t bytes);

/// Like read_fat_binary, but takes the size from the container itself. `image` may also be a registration wrapper
/// (magic 0x466243b1), which points to a container. Does not crash if the stated size exceeds the mapped memory.
[[nodiscard]] std::vector<fat_binary_entry> read_fat_binary_in_memory(const void* image);

/// Returns whether a container or a wrapper begins at `image`. Stops reading at the first byte that differs from the
/// magic.
[[nodiscard]] bool begins_with_fat_binary(const char* image);

/// Returns the PTX for the newest architecture among the entries. Throws HPE_ERROR_NOT_SUPPORTED if no entry is PTX;
/// the message names an nvcc option that adds PTX.
[[nodiscard]] const fat_binary_entry& choose_ptx(const std::vector<fat_binary_entry>& entries);

}  // namespace hpe::ptx
