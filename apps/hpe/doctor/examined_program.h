#pragma once

/// The part of `hpe doctor` about a program. It reads the program's CUDA runtime, device code and libraries from files,
/// and predicts what `hpe run` would do with the program in each mode. It does not run the program.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "apps/hpe/doctor/finding.h"
#include "apps/hpe/doctor/machine_check.h"
#include "runtime/ptx/files/cuda_parts.h"

namespace hpe::cli {

/// The kernels of a program and its libraries, as `hpe explain` judges them.
struct kernel_count {
  std::size_t kernels = 0;  ///< number of kernels in PTX
  std::size_t spreadable = 0;
  std::size_t unreadable_modules = 0;
  /// The reasons why kernels stay on one device, each with the number of its kernels; reasons with the most kernels
  /// come first.
  std::vector<std::pair<std::string, std::size_t>> obstacles;
};

struct cuda_file {
  std::string path;
  ptx::cuda_parts parts;  // device code in the file
};

struct examined_program {
  std::string path;
  std::string script;  ///< the script that `path` interprets; empty: the program is not a script
  bool is_elf = false;
  bool is_dynamic = false;
  bool is_linked_with_hpe = false;
  bool forks = false;
  std::vector<std::string> libraries;  ///< files of the libraries that the dynamic linker finds
  std::vector<std::string> missing;    ///< names of the libraries that the dynamic linker does not find
  std::vector<std::string> runtimes;   ///< names of CUDA's runtime libraries, as libcudart.so.13
  bool uses_driver = false;            ///< the program is linked with libcuda.so.1
  std::vector<cuda_file> cuda;         ///< files of program and libraries that nvcc linked; no NVIDIA libraries
  std::vector<std::string> needs_gpu;  ///< NVIDIA's libraries that contain kernels
  std::string mpi;                     ///< the file of the program's MPI library; empty: no MPI library
  kernel_count kernels;

  [[nodiscard]] bool has_cuda() const { return !cuda.empty() || !runtimes.empty() || uses_driver; }
};

/// Reads the program and its libraries. name: a file, or a name to look for in PATH. Throws bad_input if it finds no
/// executable file.
[[nodiscard]] examined_program examine(const std::string& name);

/// Returns findings about the program's files, device code and libraries.
[[nodiscard]] std::vector<finding> parts_of(const examined_program& program);

/// Returns what `hpe run`, `hpe run --spread` and `hpe run --oversubscribe` would do with the program on this machine.
[[nodiscard]] std::vector<finding> modes_of(const examined_program& program, const machine_facts& machine);

}  // namespace hpe::cli
