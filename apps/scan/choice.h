#pragma once

#include <string>
#include <vector>

#include "apps/scan/topology.h"

namespace hpe::scan {

enum class algorithm : std::uint8_t { automatic, single_pass, three_stages };

/// How a batch is spread over devices: whole problems to each device; Scan-MPS, where all devices share each problem;
/// or Scan-MP-PC, where the devices of one link domain share problems, and domains have different ones.
enum class split : std::uint8_t { automatic, problems, mps, mp_pc };

/// A batch of problems and what is wished for it.
struct batch {
  std::uint64_t length = 0;    ///< N
  std::uint64_t problems = 0;  ///< G
  bool inclusive = true;
};

/// Devices that share problems, and which ones: [first, first + count). Devices are indices into those of the choice.
struct team {
  std::vector<int> devices;
  std::uint64_t first = 0, count = 0;
};

struct choice {
  algorithm how = algorithm::single_pass;
  split spread = split::problems;
  std::vector<team> teams;           ///< those with problems
  std::vector<std::string> reasons;  ///< a sentence for each decision
};

/// Decides what is automatic. single_pass_possible: whether every device has the kernel for it. Throws hpe::error for a
/// wish that cannot be fulfilled: one pass on devices without its kernel, or shared by devices that do not reach each
/// other.
[[nodiscard]] choice choose(const batch& what, const std::vector<device_traits>& devices, bool single_pass_possible,
                            algorithm how, split spread);

[[nodiscard]] const char* name_of(algorithm how);
[[nodiscard]] const char* name_of(split spread);

}  // namespace hpe::scan
