#pragma once

/// Changes PTX so that a kernel can run a part of its grid, for devices that share the blocks of one launch.
///
/// A patched kernel has one more parameter, a grid_part. In its code, block indices and grid size are those of the
/// whole grid; its atomic operations, fences and ordered accesses apply to all devices. Variables that kernels write
/// are accessed through a table of addresses, so that all devices use the variables of one device. The patched text
/// contains this table instead of the variables. Constants, and small variables that all kernels of the program only
/// read, remain variables of the patched text; their bytes must be copied before a launch. Tables that the compiler
/// generates already contain their bytes.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/ptx/analysis/analysis.h"

namespace hpe::ptx::patch {

/// The value of a patched kernel's last parameter: which blocks of the grid a launch runs. Along each axis, it runs as
/// many blocks as the launch has, beginning with block `first`.
struct grid_part {
  std::array<std::uint32_t, 3> first{};  // index of the first block
  std::array<std::uint32_t, 3> grid{};   // size of the whole grid
};

struct patched_kernel {
  std::string name;
  std::vector<std::string> obstacles;  // why the patched texts omit the kernel; empty if they contain the kernel
  std::uint32_t part_offset = 0;       // offset of the grid_part among the parameters
  bool uses_variables = false;         // the kernel uses variables whose addresses are in patched_module::tables
  bool uses_constants = false;         // the kernel uses constants, or variables that kernels only read
};

/// A table of addresses in constant memory: 8 bytes for each of the named variables of the original texts.
struct variable_table {
  std::string name;
  std::vector<std::string> variables;
};

struct patched_module {
  std::vector<std::string> texts;       // empty if no kernel may be spread
  std::vector<patched_kernel> kernels;  // the kernels of all analyses, in the order of the analyses
  std::vector<variable_table> tables;
  std::vector<std::string> constants;  // variables whose bytes must be copied from the original module

  [[nodiscard]] const patched_kernel* find(std::string_view kernel) const;
};

/// Patches those kernels of the program `p` that have an analysis in `kernels`. The patched texts omit all other
/// kernels, kernels with an obstacle, and debug information except line numbers. Thread-safe.
[[nodiscard]] patched_module patch(const program& p, std::span<const analysis::kernel_analysis* const> kernels);

/// Returns the parameters of a launch of the patched kernel: the parameters of the original kernel, followed by `part`.
/// Missing parameters are zeros.
[[nodiscard]] std::vector<std::byte> with_part(const patched_kernel& kernel, std::span<const std::byte> parameters,
                                               const grid_part& part);

}  // namespace hpe::ptx::patch
