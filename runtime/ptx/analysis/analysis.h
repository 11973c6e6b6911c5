#pragma once

/// Analyses how the kernels of a program use global memory, and whether several devices may share the blocks of a grid.
/// The analysis reads only the PTX.
///
/// A record (struct access) describes the addresses of one instruction. In every thread in which the record's
/// assumptions hold, the address is the value of one of the record's forms for the current values of the loop counters.
/// An assumption (struct assumption) states that an arithmetic operation does not overflow its register.

#include <memory>
#include <string>
#include <vector>

#include "runtime/ptx/analysis/verdict.h"

namespace hpe::ptx::analysis {

/// Accesses to one array whose addresses differ only by offsets, each of which is the same in the whole grid.
struct access_pattern {
  std::array<expression_id, 3> blocks{};
  expression_id local = 0;  // the terms of the address that depend on thread index and loop counters
  address_class how = address_class::data_dependent;
  std::vector<expression_id> offsets;  // in bytes; constants in ascending order, then other expressions
  /// The offsets relative to the offset of a write with the same `blocks` and `local`, in this array or in another
  /// array. If the kernel has no such write, the offsets are relative to the first offset. For a stencil, these offsets
  /// are the halo.
  std::vector<expression_id> neighbours;
  bool reads = false, writes = false, updates = false;
  std::optional<expression_id> written;  // one of the offsets at which the kernel writes
};

/// An array: all accesses whose addresses have the same base.
struct array_use {
  std::optional<quantity_id> base;                   // empty: all accesses with an unknown base
  std::uint32_t element = 0;                         // size of the widest access in bytes; 0 if unknown
  std::uint32_t reads = 0, writes = 0, updates = 0;  // the numbers of instructions; an update is an atomic operation
  address_class how = address_class::local;
  std::vector<access_pattern> patterns;

  /// Whether the block index along an axis selects the part of the array that a block uses. The function ignores single
  /// elements that all blocks only read, such as the border elements of a stencil.
  [[nodiscard]] bool is_cut_by(unsigned axis) const;
};

struct loop_use {
  std::uint32_t line = 0;  // line in the PTX text
  std::uint32_t source_file = 0, source_line = 0;
};

struct kernel_analysis {
  const function* kernel = nullptr;
  std::unique_ptr<kernel_walk> walk;
  std::unique_ptr<dependences> known;
  std::vector<access> accesses;  // for accesses in called functions, only access::what is known
  // Why hpe does not know the code of the kernel or of a function that the kernel calls (function::left_out); empty if
  // hpe knows all of the code.
  std::string left_out;
  // Whether the kernel uses textures or surfaces, launches kernels, or contains code that hpe does not know.
  bool uses_other_memory = false;
  std::vector<array_use> arrays;
  std::vector<loop_use> loops;
  analysis::verdict verdict;

  /// By axis (x, y, z): whether the kernel, or a function that it may call, reads the block index. If none does, all
  /// blocks along the axis do the same.
  std::array<bool, 3> axes{};
};

/// Analyses a kernel. `kernel` must belong to `p`, and `p` must outlive the result. Thread-safe.
[[nodiscard]] kernel_analysis analyse(const program& p, const function& kernel);

}  // namespace hpe::ptx::analysis
