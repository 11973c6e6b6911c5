#pragma once

/// How the kernels of a program use global memory, and whether their grids may be cut over several devices. The
/// analysis reads only the PTX.
///
/// A record describes an address correctly in every thread of every block for which the record's assumptions hold: the
/// address is the value of one of the record's forms, computed with the current values of the loop counters. An
/// assumption (struct assumption) says that 32-bit arithmetic does not wrap.

#include <memory>
#include <string>
#include <vector>

#include "runtime/ptx/analysis/verdict.h"

namespace hpe::ptx::analysis {

/// The accesses to one array whose addresses differ only by offsets that are the same in the whole grid.
struct access_pattern {
  std::array<expression_id, 3> blocks{};
  expression_id local = 0;  // the part of the address that depends on thread index and loop counters
  address_class how = address_class::data_dependent;
  std::vector<expression_id> offsets;  // constants in ascending order, then other expressions
  /// The offsets relative to the offset of a write whose address has the same `blocks` and `local`, in this array or in
  /// another one; if the kernel has no such write, relative to the first offset. For a stencil, these offsets are the
  /// halo.
  std::vector<expression_id> neighbours;
  bool reads = false, writes = false, updates = false;
  std::optional<expression_id> written;  // one of the offsets that are written
};

/// An array: all accesses with one base.
struct array_use {
  std::optional<quantity_id> base;                   // nullopt: these accesses have an unknown base
  std::uint32_t element = 0;                         // size of the widest access in bytes; 0: not known
  std::uint32_t reads = 0, writes = 0, updates = 0;  // the number of instructions
  address_class how = address_class::local;
  std::vector<access_pattern> patterns;

  /// Whether the block index of an axis selects the part of the array that a block uses. Single elements that all
  /// blocks only read, such as those at the border of a stencil, do not count.
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
  std::vector<access> accesses;  // called functions: only access::what is known
  // the kernel uses textures or surfaces, launches kernels, or contains code that hpe does not know
  bool uses_other_memory = false;
  std::vector<array_use> arrays;
  std::vector<loop_use> loops;
  analysis::verdict verdict;

  /// By axis (x, y, z): whether the code depends on the block index. Only then does a grid need several blocks along
  /// the axis.
  std::array<bool, 3> axes{};
};

/// Analyses a kernel. `kernel` must belong to `p`, and `p` must outlive the result. Thread-safe.
[[nodiscard]] kernel_analysis analyse(const program& p, const function& kernel);

}  // namespace hpe::ptx::analysis
