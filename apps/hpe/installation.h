#pragma once

/// The paths of hpe's libraries, and the libraries that a program would load with them.

#include <filesystem>
#include <string>

namespace hpe::cli {

/// The libraries of the running hpe. A build without the CUDA toolkit lacks the shim, and hpe's CUDA runtime and CUDA
/// driver; a build without MPI lacks the wrappers.
struct installation {
  std::filesystem::path library;                  ///< libhpe.so
  std::filesystem::path mpi;                      ///< wrappers of MPI's functions
  std::filesystem::path shim;                     ///< intercepts calls of NVIDIA's driver library on GPUs
  std::filesystem::path soft_runtime;             ///< CUDA's runtime library on soft devices, libcudart.so.13
  std::filesystem::path soft_runtime_of_cuda_12;  ///< CUDA's runtime library on soft devices, libcudart.so.12
  std::filesystem::path soft_driver;              ///< CUDA's driver library on soft devices

  [[nodiscard]] static installation own();
};

/// Returns the value of an environment variable; empty if it is not set.
[[nodiscard]] std::string variable(const char* name);

/// Returns the file that a program's name means: the name itself if it contains a slash, else the first match in PATH.
/// Returns an empty path if there is no executable file.
[[nodiscard]] std::filesystem::path program_file(const std::string& name);

/// Whether a program would find a CUDA driver; without a driver, no shim is preloaded. This function asks the shim
/// which driver file a program would load. It does not load the driver, because that would delay the start of the
/// program.
[[nodiscard]] bool has_driver();

/// Whether there is a driver but no shim, so that CUDA programs would use the driver without hpe.
[[nodiscard]] bool lacks_the_shim();

}  // namespace hpe::cli
