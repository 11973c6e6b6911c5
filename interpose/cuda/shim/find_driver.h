#pragma once

#include <climits>
#include <cstddef>

namespace hpe::cuda_shim {

/// The path of a file.
struct path {
  char text[PATH_MAX];
};

/// The file that the dynamic linker would load for a library that is not loaded yet, for a program started like this
/// one: searches the folders of LD_LIBRARY_PATH and of the program itself, then the linker's cache. Skips the shim's
/// own file and hpe's driver library for soft devices. Returns false if there is none.
bool find_library(const char* name, path& result);

/// Finds the driver's file: `wanted`, if it is not empty, else what find_library finds.
bool find_driver(const char* wanted, path& result);

/// Whether two paths name the same file.
bool same_file(const char* one, const char* other);

/// The path of the shim itself.
const char* own_file();

}  // namespace hpe::cuda_shim
