#pragma once

// Starts programs on soft devices, even on a machine that has GPUs.

#include <string>

#include "tests/shell.h"

inline std::string cuda_program(const std::string& name) { return std::string(HPE_TEST_PROGRAMS "/") + name; }

/// Runs a command by `hpe run` on `devices` soft devices. HPE_STALL_AFTER=0 switches off the report of long waits,
/// because tests compare the whole output. A command can set this option by `env`.
inline outcome soft_run(const std::string& command, int devices = 2, const std::string& options = "") {
  return shell(std::string("HPE_STALL_AFTER=0 " HPE_COMMAND " run --cuda soft --devices soft:") +
               std::to_string(devices) + " " + options + " -- " + command);
}
