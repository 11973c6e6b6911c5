#pragma once

#include <filesystem>
#include <string>

namespace hpe::os {

struct free_bytes {
  double bytes = 0;
  std::string limit;  ///< what has no more memory, for messages: the machine, or a control group with its folder
};

/// The operating system's estimate of how many bytes this process can allocate without swapping, within the limits of
/// its control groups; infinity if the estimate is not available. root is the folder that contains proc and sys.
[[nodiscard]] free_bytes free_memory(const std::filesystem::path& root = "/");

}  // namespace hpe::os
