#pragma once

/// Changes PTX so that a launch of a kernel can run a part of the kernel's grid. Several devices can then share the
/// blocks of one launch.
///
/// A patched kernel has one more parameter, a grid_part. Its code sees the block indices in the whole grid and the size
/// of the whole grid, and its atomic operations, fences and ordered accesses have system scope. Constants, and small
/// variables that no kernel of the program writes, remain variables of the patched text. Before a launch, the caller
/// must copy the bytes of these variables from the original module (patched_module::constants). Constants that the
/// compiler generated, such as string literals, also remain, with their initial values. Instead of all other variables
/// in global memory, the patched text contains a table of their addresses, from which patched code loads the addresses.
/// Therefore all devices use the variables of one device.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/ptx/analysis/analysis.h"

namespace hpe::ptx::patch {

/// The value of a patched kernel's last parameter: which blocks of the grid a launch runs. A launch of n blocks along
/// an axis runs the blocks from first to first + n - 1 of the grid.
struct grid_part {
  std::array<std::uint32_t, 3> first{};  // index of the first block
  std::array<std::uint32_t, 3> grid{};   // size of the whole grid
};

struct patched_kernel {
  std::string name;
  std::vector<std::string>
      obstacles;                  // the reasons why the patched texts omit the kernel; empty if they contain the kernel
  std::uint32_t part_offset = 0;  // offset of the grid_part in the kernel's parameters, in bytes
  bool uses_variables = false;    // whether the kernel uses variables whose addresses are in patched_module::tables
  bool uses_constants = false;    // whether the kernel uses variables of patched_module::constants
};

/// A table in constant memory: the addresses (8 bytes each) of variables of the original texts.
struct variable_table {
  std::string name;
  std::vector<std::string> variables;
};

struct patched_module {
  std::vector<std::string> texts;       // empty if no kernel may be spread
  std::vector<patched_kernel> kernels;  // the kernels of all analyses, in the order of the analyses
  std::vector<variable_table> tables;
  std::vector<std::string> constants;  // the variables whose bytes the caller must copy from the original module

  [[nodiscard]] const patched_kernel* find(std::string_view kernel) const;
};

/// Patches the kernels of program `p` whose analyses are in `kernels`. The patched texts omit all other kernels,
/// kernels with an obstacle, and debug information except line numbers. Thread-safe.
[[nodiscard]] patched_module patch(const program& p, std::span<const analysis::kernel_analysis* const> kernels);

/// Returns the parameters of a launch of the patched kernel: the parameters of the original kernel, followed by `part`.
/// If `parameters` is too short, zeros replace the missing bytes.
[[nodiscard]] std::vector<std::byte> with_part(const patched_kernel& kernel, std::span<const std::byte> parameters,
                                               const grid_part& part);

}  // namespace hpe::ptx::patch
