#pragma once

#include <climits>
#include <cstddef>

namespace hpe::cuda_shim {

/// A buffer for the path of a file.
struct path_buffer {
  char text[PATH_MAX];
};

/// Finds the file that the dynamic linker would load for the library `name` if the process had not loaded this library
/// before, and stores the file's path in `result`. Searches the folders of LD_LIBRARY_PATH and of the program's RPATH
/// or RUNPATH, then the linker's cache. Ignores the shim's own file and hpe's driver library for soft devices. Returns
/// false if it finds no file.
bool find_library(const char* name, path_buffer& result);

/// Stores the path of the driver in `result`: `wanted` if it is not empty, otherwise the result of find_library for
/// libcuda.so.1. Returns false if it finds no driver.
bool find_driver(const char* wanted, path_buffer& result);

/// Whether two paths name the same file.
bool same_file(const char* one, const char* other);

/// Returns the path of the shim itself.
const char* own_file();

}  // namespace hpe::cuda_shim
