#pragma once

#include <climits>
#include <cstddef>

namespace hpe::cuda_shim {

/// The path of a file.
struct path {
  char text[PATH_MAX];
};

/// Where the dynamic linker would find a library that is not loaded yet, for a program started like this one: the
/// folders of LD_LIBRARY_PATH and of the program itself, then the linker's cache. The shim's own file is passed over.
/// False if it is nowhere.
bool find_library(const char* name, path& result);

/// The same for the driver, unless `wanted` (a path; empty: none) names it.
bool find_driver(const char* wanted, path& result);

/// Whether two paths name one file.
bool same_file(const char* one, const char* other);

/// The file of this library.
const char* own_file();

}  // namespace hpe::cuda_shim
