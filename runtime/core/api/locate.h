#pragma once

#include <string>

namespace hpe::core {

/// The shared object with hpe's own kernels: the option if it is set, else the one beside the runtime library or the
/// program. Throws HPE_ERROR_NOT_FOUND with the places that were looked at.
[[nodiscard]] std::string find_own_kernels(const std::string& option);

}  // namespace hpe::core
