#pragma once

#include <string>
#include <vector>

namespace hpe {

/// Where files that are installed with this code are looked for: the folder of the library or program that it is part
/// of, and that of the program that runs.
[[nodiscard]] std::vector<std::string> own_folders();

}  // namespace hpe
