#pragma once

/// The shared objects with kernels of hpe's own applications. They lie beside libhpe.so. Any thread.

#include <string>

namespace hpe::modules {

/// The path of a module, whether it exists or not.
[[nodiscard]] std::string path_of(const std::string& file);

/// Likewise. Throws hpe::error (HPE_ERROR_NOT_FOUND) if it does not exist.
[[nodiscard]] std::string require(const std::string& file);

}  // namespace hpe::modules
