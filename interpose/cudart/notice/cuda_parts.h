#pragma once

/// What an ELF file (a program or a library) has of CUDA. It is read from what `strip` leaves: section names and the
/// dynamic symbols.

#include <optional>
#include <string>

namespace hpe::cudart {

struct cuda_parts {
  bool imports_runtime = false;  // asks the dynamic linker for the CUDA runtime; else it has a copy of its own inside
  bool has_ptx = false;          // some of its device code is PTX, or it cannot be told
};

/// Reads a file. Nothing for one that is not there, is no 64-bit ELF file, is damaged, or was not linked by nvcc. Reads
/// a few pages only where there is no CUDA. Thread-safe; does not throw for any content of the file.
[[nodiscard]] std::optional<cuda_parts> read_cuda_parts(const std::string& path);

}  // namespace hpe::cudart
