#pragma once

#include <filesystem>

namespace hpe::os {

/// The kernel's estimate of the bytes that this process can allocate without swapping, within the limits of its control
/// groups; infinity if it is not known. root is the folder that contains proc and sys.
[[nodiscard]] double free_memory(const std::filesystem::path& root = "/");

}  // namespace hpe::os
