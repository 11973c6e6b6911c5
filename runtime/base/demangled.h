#pragma once

#include <string>

namespace hpe {

/// Decodes a name that a C++ compiler encoded: "_Z1kPi" becomes "k(int*)", as in the source. Returns other names
/// unchanged. Thread-safe.
[[nodiscard]] std::string demangled(const std::string& symbol);

}  // namespace hpe
