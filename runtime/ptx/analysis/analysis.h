#pragma once

/// How the kernels of a program use global memory, and whether their grids may be cut over several devices. Pure
/// functions of the PTX.
///
/// What a record says of an address holds in every thread of every block for which the record's assumptions hold: the
/// address is one of the forms, with the loop counters as they are at that time. Assumptions are about 32-bit
/// arithmetic that does not wrap (assumption).

#include <memory>
#include <string>
#include <vector>

#include "runtime/ptx/analysis/verdict.h"

namespace hpe::ptx::analysis {

/// Accesses to one array that differ by offsets which are the same for the whole grid.
struct access_pattern {
  std::array<expression_id, 3> blocks{};
  expression_id local = 0;  // of thread index and loop counters
  address_class how = address_class::data_dependent;
  std::vector<expression_id> offsets;  // in ascending order where they are numbers
  /// The offsets as seen from the element that the kernel writes at the same place, in this array or another; without
  /// one, from the first offset. So these are the halo of a stencil.
  std::vector<expression_id> neighbours;
  bool reads = false, writes = false, updates = false;
  std::optional<expression_id> written;  // an offset that is written
};

/// An array: all accesses with one base.
struct array_use {
  std::optional<quantity_id> base;                   // none: all accesses whose base is not known
  std::uint32_t element = 0;                         // bytes of the widest access; 0: not known
  std::uint32_t reads = 0, writes = 0, updates = 0;  // instructions
  address_class how = address_class::local;
  std::vector<access_pattern> patterns;

  /// Whether the block index of an axis selects the part of the array that is used, but for single elements that all
  /// blocks use, as at the border of a stencil.
  [[nodiscard]] bool is_cut_by(unsigned axis) const;
};

struct loop_use {
  std::uint32_t line = 0;  // in the PTX text
  std::uint32_t source_file = 0, source_line = 0;
};

struct kernel_analysis {
  const function* kernel = nullptr;
  std::unique_ptr<kernel_walk> walk;
  std::unique_ptr<dependences> known;
  std::vector<access> accesses;  // with those of called functions, of which only the kind is known
  std::vector<array_use> arrays;
  std::vector<loop_use> loops;
  analysis::verdict verdict;

  /// Whether the code depends on the block index of an axis, so that a grid may have blocks along it.
  std::array<bool, 3> axes{};
};

/// The kernel must be one of the program, which must outlive the result. Thread-safe.
[[nodiscard]] kernel_analysis analyse(const program& p, const function& kernel);

}  // namespace hpe::ptx::analysis
