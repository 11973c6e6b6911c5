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

/// Starts the runtime, and copies data to each device, between every two devices, and back.
[[nodiscard]] machine_check check_machine();

/// Reports the MPI library that programs of this machine find, or the library in `file`, and how hpe works with it.
[[nodiscard]] finding check_mpi(const std::string& file = "");

}  // namespace hpe::cli
