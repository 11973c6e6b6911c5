#pragma once

/// The shared objects with kernels of hpe's own applications, in the folder of libhpe.so. Any thread may call these
/// functions.

#include <string>

namespace hpe::modules {

/// Returns the path of a module, whether it exists or not.
[[nodiscard]] std::string path_of(const std::string& file);

/// Returns the path of a module. Throws hpe::error (HPE_ERROR_NOT_FOUND) if the file does not exist.
[[nodiscard]] std::string require(const std::string& file);

}  // namespace hpe::modules
