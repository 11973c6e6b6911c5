#pragma once

/// The CUDA parts of an ELF file (a program or a library), found by what `strip` leaves in it: section names and
/// dynamic symbols.

#include <optional>
#include <string>

namespace hpe::cudart {

struct cuda_parts {
  bool imports_runtime = false;  // imports the CUDA runtime from a shared library; otherwise has its own copy
  bool has_ptx = false;          // has PTX among its device code, or the code cannot be read
};

/// Reads a file. Returns nothing if it does not exist, is no 64-bit ELF file, is damaged, or was not linked by nvcc,
/// and for programs that are linked with libhpe.so, whose kernels hpe launches on its devices. For files without CUDA
/// this reads only a few pages. Thread-safe; no content of the file makes it throw.
[[nodiscard]] std::optional<cuda_parts> read_cuda_parts(const std::string& path);

}  // namespace hpe::cudart
