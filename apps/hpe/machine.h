#pragma once

/// Facts about the machine from the operating system and the driver's files, without starting the runtime.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace hpe::cli {

/// A limit of this machine that affects hpe, and advice if the limit is too low.
struct limit {
  std::string name;
  std::string value;   ///< readable text: a number with its unit, or "unlimited"
  std::string advice;  ///< empty: the limit is high enough
};

/// A limit on bytes, files or mappings, and the lowest value that is enough.
struct judged {
  std::string name;
  std::optional<double> value;  ///< nullopt: there is no limit
  double enough;
  bool bytes;          ///< the value counts bytes; else files or mappings
  std::string advice;  ///< for a value below `enough`
};
[[nodiscard]] limit judge(const judged& j);

/// Returns the limits of this process and its machine; the limits that most often cause trouble come first.
[[nodiscard]] std::vector<limit> limits_of_machine();

/// Returns the version of CUDA that the driver supports, as in "13.0"; empty if there is no driver.
[[nodiscard]] std::string version_of_cuda();

/// A GPU that NVIDIA's kernel module drives, whether hpe uses it or not, and its link to the host. Empty texts and -1
/// stand for unknown values.
struct gpu {
  std::string model;
  std::string bus;         ///< the GPU's address on the PCI bus, as in 0000:17:00.0
  std::string link_speed;  ///< present speed of the PCI link: 32.0 GT/s PCIe
  std::string link_width;  ///< number of lanes of the PCI link
  int numa_node;
};

/// Returns all GPUs, by PCI address. root is the folder that contains proc and sys.
[[nodiscard]] std::vector<gpu> gpus_of_machine(const std::filesystem::path& root = "/");

}  // namespace hpe::cli
