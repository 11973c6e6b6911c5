#pragma once

/// What the operating system tells of the machine, read from /proc and /sys without starting the runtime.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace hpe::cli {

/// A limit of this machine that hpe meets, and what it does if it is too low.
struct limit {
  std::string name;
  std::string value;   ///< for people: a number with its unit, or "unlimited"
  std::string advice;  ///< empty: the limit is high enough
};

/// A number of bytes, files or mappings against the least that is enough; nullopt: there is no limit.
struct judged {
  std::string name;
  std::optional<double> value;
  double enough;
  bool bytes;          ///< else a count
  std::string advice;  ///< for less
};
[[nodiscard]] limit judge(const judged& j);

/// The limits of this process and its machine, in the order of how often they hurt.
[[nodiscard]] std::vector<limit> limits_of_machine();

/// A GPU that NVIDIA's kernel module drives, whether hpe uses it or not, and its link to the host. Empty texts and -1:
/// not told.
struct gpu {
  std::string model;
  std::string bus;         ///< its address on the PCI bus: 0000:17:00.0
  std::string link_speed;  ///< of the PCI link, as it is now: 32.0 GT/s PCIe
  std::string link_width;  ///< its lanes
  int numa_node;
};

/// All of them, by address. root is the folder where proc and sys are found.
[[nodiscard]] std::vector<gpu> gpus_of_machine(const std::filesystem::path& root = "/");

}  // namespace hpe::cli
