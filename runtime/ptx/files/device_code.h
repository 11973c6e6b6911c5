#pragma once

/// Reads the PTX from files: PTX texts, fat binaries, and the objects, libraries and programs that nvcc writes.

#include <functional>
#include <string>
#include <vector>

#include "runtime/ptx/files/elf_file.h"
#include "runtime/ptx/files/fat_binary.h"

namespace hpe::ptx {

/// Calls `see` with the entries of each fat binary in a section, until `see` returns false. Each fat binary begins at a
/// multiple of eight bytes. Throws the same errors as read_fat_binary.
void visit_fat_binaries(file_bytes section, const std::function<bool(const std::vector<fat_binary_entry>&)>& see);

/// The names of the sections of ELF files in which nvcc stores fat binaries. The first section contains complete
/// modules. The second contains code for the device linker, compiled with -rdc=true.
inline constexpr const char* fat_binaries_section = ".nv_fatbin";
inline constexpr const char* linked_fat_binaries_section = "__nv_relfatbin";

struct device_code {
  /// The PTX texts of each module. Callers parse the texts of one module together, and each module separately.
  std::vector<std::vector<std::string>> modules;
  /// True if the last module was compiled with -rdc=true. The file then has one more fat binary: the device linker's
  /// output for this module, with machine code and no PTX.
  bool last_is_linked = false;
  /// The number of fat binaries that contain machine code of GPUs, but no PTX.
  unsigned without_ptx = 0;
};

/// Reads a file. From each fat binary, reads the PTX for the newest architecture. Throws HPE_ERROR_INVALID_ARGUMENT if
/// the file does not exist, is damaged, or is not one of the kinds above. Throws HPE_ERROR_NOT_SUPPORTED if the file
/// contains no PTX.
[[nodiscard]] device_code read_device_code(const std::string& path);

/// Like read_device_code, but the caller passes the content of the file. `path` is only for error messages.
[[nodiscard]] device_code device_code_in(file_bytes content, const std::string& path);

/// Returns whether a PTX text contains a kernel with this name.
[[nodiscard]] bool has_kernel(const std::string& text, const std::string& name);

}  // namespace hpe::ptx
