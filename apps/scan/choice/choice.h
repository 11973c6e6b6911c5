#pragma once

#include <string>
#include <vector>

#include "apps/scan/choice/topology.h"

namespace hpe::scan {

enum class algorithm : std::uint8_t { automatic, single_pass, three_stages };

/// The way in which a batch is spread over devices. problems: each device has whole problems. mps (Scan-MPS): all
/// devices share each problem. mp_pc (Scan-MP-PC): the devices of a link domain share problems, and different domains
/// have different problems.
enum class split : std::uint8_t { automatic, problems, mps, mp_pc };

/// A batch of problems and the kind of scan.
struct batch {
  std::uint64_t length = 0;    ///< N
  std::uint64_t problems = 0;  ///< G
  bool inclusive = true;
};

/// Devices that together compute the problems [first, first + count). Devices are numbered by their index in the list
/// passed to choose().
struct team {
  std::vector<int> devices;
  std::uint64_t first = 0, count = 0;
};

struct choice {
  algorithm how = algorithm::single_pass;
  split spread = split::problems;
  std::vector<team> teams;           ///< only teams that have problems
  std::vector<std::string> reasons;  ///< a sentence for each decision
};

/// Decides everything that is `automatic`. single_pass_possible: whether every device has a single-pass kernel. Throws
/// hpe::error if a single pass is requested but a device has no kernel for it, or the devices that share a problem do
/// not reach each other's memory.
[[nodiscard]] choice choose(const batch& what, const std::vector<device_traits>& devices, bool single_pass_possible,
                            algorithm how, split spread);

[[nodiscard]] const char* name_of(algorithm how);
[[nodiscard]] const char* name_of(split spread);

}  // namespace hpe::scan
