#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "hpe/hpe.h"

namespace hpe {

/// Where files that are installed with this code are looked for: the folder of the library or program that it is part
/// of, and that of the program that runs.
[[nodiscard]] std::vector<std::string> own_folders();

/// The file of that name in a folder given relative to one of own_folders(). Throws an error of this status that names
/// the folders that were looked at, and the option that can name the file.
[[nodiscard]] std::string find_own_file(const std::string& name, std::initializer_list<const char*> relative,
                                        hpeStatus missing, const char* option);

}  // namespace hpe
