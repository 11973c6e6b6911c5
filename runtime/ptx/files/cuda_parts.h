#pragma once

/// The CUDA parts of an ELF file (a program or a library). hpe finds them through section names and dynamic symbols,
/// which `strip` does not remove.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace hpe::ptx {

struct cuda_parts {
  bool has_own_runtime = false;  // whether a copy of the CUDA runtime is linked into the file
  bool has_ptx = false;          // whether the device code contains PTX, or cannot be read
  bool has_functions = false;    // whether the device code contains functions, such as kernels, or cannot be read
  /// The architectures of the device code that read_cuda_parts has read: 90 for compute_90 and sm_90.
  std::set<std::uint32_t> ptx_architectures, machine_code_architectures;
};

/// How much of the device code read_cuda_parts reads: up to the first PTX and the first function, or all. Reading all
/// code of a large library takes seconds, because the function decompresses all PTX.
enum class code_to_read : std::uint8_t { up_to_ptx, all };

/// Reads a file. Returns nothing if the file does not exist, is not a 64-bit ELF file, is damaged, or was not linked by
/// nvcc. Also returns nothing for a program that is linked with libhpe.so, because such a program uses hpe's own
/// devices. Reads only a few pages of a file without CUDA. Thread-safe; never throws because of a file's content.
[[nodiscard]] std::optional<cuda_parts> read_cuda_parts(const std::string& path,
                                                        code_to_read what = code_to_read::up_to_ptx);

/// Returns the names of the shared CUDA runtimes that a file is linked with: libcudart.so.13, or the name of a copy in
/// a Python wheel (libcudart.3eda8113.so.13). Reads only a few pages of a file that is not linked with one.
/// Thread-safe; never throws because of a file's content.
[[nodiscard]] std::vector<std::string> linked_runtimes(const std::string& path);

/// Returns whether a file has the name of an NVIDIA compiler library, such as NVRTC or nvJitLink. Such a library
/// contains a CUDA runtime, but needs no GPU.
[[nodiscard]] bool is_compiler(const std::string& path);

/// Returns whether the name of a file is the name of an NVIDIA library with kernels (cuBLAS, cuFFT). Only NVIDIA can
/// relink these libraries.
[[nodiscard]] bool needs_gpu(const std::string& path);

}  // namespace hpe::ptx
