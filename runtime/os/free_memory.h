#pragma once

#include <filesystem>

namespace hpe::os {

/// The operating system's estimate of how many bytes this process can allocate without swapping, within the limits of
/// its control groups; infinity if the estimate is not available. root is the folder that contains proc and sys.
[[nodiscard]] double free_memory(const std::filesystem::path& root = "/");

}  // namespace hpe::os
