#pragma once

/// Runs a program under `hpe run` and measures the peak of the device memory that it uses.

#include <cstdint>
#include <string>
#include <vector>

namespace hpe::cli {

struct memory_peak {
  std::string user;          ///< "process 4711", "rank 3"; empty: all processes that use this GPU
  std::string device;        ///< "soft device 0", or a GPU's PCI address
  std::uint64_t most = 0;    ///< peak of the device memory in use, in bytes
  std::uint64_t memory = 0;  ///< size of the device's memory, in bytes
};

struct trial {
  int status = 0;  ///< wait status, as waitpid() stores it
  double seconds = 0;
  std::vector<memory_peak> peaks;
};

/// Runs a program to its end, with its standard output redirected to standard error. The peak on a GPU is the increase
/// of its memory in use, so it includes the memory of other programs on that GPU. hpe's memory is sampled every 1 ms,
/// and the memory of GPUs every 20 ms; shorter peaks may be missed. Throws std::system_error if hpe cannot be started.
[[nodiscard]] trial try_out(const std::vector<std::string>& program);

}  // namespace hpe::cli
