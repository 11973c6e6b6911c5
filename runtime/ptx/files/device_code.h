#pragma once

/// The PTX in files: PTX texts, fat binaries, and the objects, libraries and programs that nvcc makes.

#include <functional>
#include <string>
#include <vector>

#include "runtime/ptx/files/elf_file.h"
#include "runtime/ptx/files/fat_binary.h"

namespace hpe::ptx {

/// Calls `see` with the entries of each fat binary in a section, until `see` returns false. The fat binaries in a
/// section follow one another at multiples of eight bytes. Throws as read_fat_binary does.
void visit_fat_binaries(file_bytes section, const std::function<bool(const std::vector<fat_binary_entry>&)>& see);

/// The names of the sections of ELF files in which nvcc stores fat binaries. The first is for whole modules. The second
/// is for code that was compiled with -rdc=true and is linked by the device linker.
inline constexpr const char* fat_binaries_section = ".nv_fatbin";
inline constexpr const char* linked_fat_binaries_section = "__nv_relfatbin";

struct device_code {
  /// The PTX texts of each module. Parse the texts of one module together, and each module separately.
  std::vector<std::vector<std::string>> modules;
  /// True if the last module was compiled with -rdc=true. The linker's output for this module is one more fat binary,
  /// with machine code and no PTX.
  bool last_is_linked = false;
  /// The number of fat binaries that contain machine code of GPUs, but no PTX.
  unsigned without_ptx = 0;
};

/// Reads a file. From each fat binary, reads the PTX for the newest architecture. Throws HPE_ERROR_INVALID_ARGUMENT if
/// the file does not exist, is damaged, or is of no supported kind. Throws HPE_ERROR_NOT_SUPPORTED if the file contains
/// no PTX.
[[nodiscard]] device_code read_device_code(const std::string& path);

/// Like read_device_code, but for a file whose content is given. Messages name `path`.
[[nodiscard]] device_code device_code_in(file_bytes content, const std::string& path);

/// Returns whether a PTX text contains a kernel with this name.
[[nodiscard]] bool has_kernel(const std::string& text, const std::string& name);

}  // namespace hpe::ptx
