#pragma once

/// The PTX in files: PTX texts, fat binaries, and the objects, libraries and programs that nvcc makes.

#include <functional>
#include <string>
#include <vector>

#include "runtime/ptx/files/elf_file.h"
#include "runtime/ptx/files/fat_binary.h"

namespace hpe::ptx {

/// Calls `see` with the entries of each fat binary in a section, until it returns false. They lie one after the other,
/// at multiples of eight bytes. Throws as read_fat_binary does.
void visit_fat_binaries(file_bytes section, const std::function<bool(const std::vector<fat_binary_entry>&)>& see);

/// The sections of ELF files in which nvcc puts fat binaries: of whole modules, and of code that was compiled with
/// -rdc=true and is linked on the device side.
inline constexpr const char* fat_binaries_section = ".nv_fatbin";
inline constexpr const char* linked_fat_binaries_section = "__nv_relfatbin";

struct device_code {
  /// Each is to be parsed by itself; the texts of one belong together.
  std::vector<std::vector<std::string>> modules;
  /// Fat binaries with machine code of GPUs only.
  unsigned without_ptx = 0;
};

/// Reads a file; of each fat binary the PTX for the newest architecture. Throws HPE_ERROR_INVALID_ARGUMENT if there is
/// no such file, it is none of these, or it is damaged, and HPE_ERROR_NOT_SUPPORTED if it has no PTX.
[[nodiscard]] device_code read_device_code(const std::string& path);

/// The same of the content of a file; messages name `path`.
[[nodiscard]] device_code device_code_in(file_bytes content, const std::string& path);

/// Whether a PTX text has a kernel of this name.
[[nodiscard]] bool has_kernel(const std::string& text, const std::string& name);

}  // namespace hpe::ptx
