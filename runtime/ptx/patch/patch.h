#pragma once

/// PTX whose kernels run a part of their grid, for devices that share the blocks of one launch.
///
/// A patched kernel has one parameter more, a grid_part. Its block indices and the size of its grid are those of the
/// whole grid; its atomic operations, fences and ordered accesses reach all devices. Variables in global memory are
/// used through a table of addresses, so that all devices use those of one: the patched text has the table in place of
/// the variables. Constants stay variables of the patched text, which has to be given their bytes before a launch.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/ptx/analysis/analysis.h"

namespace hpe::ptx::patch {

/// The blocks that one launch of a patched kernel runs, as many as the launch has: the value of its last parameter.
struct grid_part {
  std::array<std::uint32_t, 3> first{};  // index of the first block
  std::array<std::uint32_t, 3> grid{};   // size of the whole grid
};

struct patched_kernel {
  std::string name;
  std::vector<std::string> obstacles;  // why it is not in the patched texts; empty: it is
  std::uint32_t part_offset = 0;       // of the grid_part among the parameters
  bool uses_variables = false;         // those of the tables
  bool uses_constants = false;
};

/// A table of addresses in constant memory: 8 bytes for each of the named variables of the original texts.
struct variable_table {
  std::string name;
  std::vector<std::string> variables;
};

struct patched_module {
  std::vector<std::string> texts;       // none if no kernel may be spread
  std::vector<patched_kernel> kernels;  // of all analyses, in their order
  std::vector<variable_table> tables;
  std::vector<std::string> constants;  // variables whose bytes are to be copied from those of the original texts

  [[nodiscard]] const patched_kernel* find(std::string_view kernel) const;
};

/// The analyses are of kernels of the program. Other kernels and those with an obstacle are left out of the texts. The
/// texts have no debug information besides line numbers. Thread-safe.
[[nodiscard]] patched_module patch(const program& p, std::span<const analysis::kernel_analysis* const> kernels);

/// The parameters of a launch of the patched kernel: those of the original one, at least all of its own, and the part.
[[nodiscard]] std::vector<std::byte> with_part(const patched_kernel& kernel, std::span<const std::byte> parameters,
                                               const grid_part& part);

}  // namespace hpe::ptx::patch
