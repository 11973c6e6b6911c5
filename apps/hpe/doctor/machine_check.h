#pragma once

/// The part of `hpe doctor` that needs no program: whether hpe works on this machine.

#include <cstdint>
#include <string>
#include <vector>

#include "apps/hpe/doctor/finding.h"

namespace hpe::cli {

/// The facts about the machine on which the findings about a program depend.
struct machine_facts {
  bool has_driver = false;                   ///< CUDA programs run on GPUs; false: they run on soft devices
  std::vector<unsigned> gpu_architectures;   ///< as in 90 for sm_90, for each GPU whose architecture is known
  std::vector<std::uint64_t> device_memory;  ///< bytes of each device of hpe; empty if hpe does not start
};

struct machine_check {
  machine_facts facts;
  std::vector<finding> findings;
};

/// Starts the runtime, copies data to each device, between every two devices and back, and returns the findings.
[[nodiscard]] machine_check check_machine();

/// Returns a finding about the MPI library in `file`, or about the one that programs on this machine load if `file` is
/// empty: whether hpe's wrappers support this library.
[[nodiscard]] finding check_mpi(const std::string& file = "");

}  // namespace hpe::cli
