#pragma once

/// The accesses of a launch to global memory that certainly happen, with their exact bytes. Unlike the footprint
/// (footprint.h), which is an upper bound, the result never contains a byte that no thread accesses.
///
/// An access counts only if the branches that decide whether a thread reaches it compare sums of block indices, thread
/// indices and loop counters, and if its address is such a sum too. Values from memory, and code that hpe does not
/// know, are not certain.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/box.h"
#include "runtime/spread/model/kernel_model.h"

namespace hpe::spread {

struct certain_access {
  const ptx::instruction* by = nullptr;
  std::uint32_t number = 0;  // the number of the access, from 1
  ptx::analysis::access_kind what = ptx::analysis::access_kind::read;
  std::uint32_t pointer = 0;  // index into kernel_model::pointers
  /// Bytes begin <= address < end, in ascending order of `begin`.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  bool is_partial = false;  // whether the access is to more ranges than these
  /// All bytes of the access, as a box at the first address; nullopt if they are no box.
  std::optional<box> shape{};
};

/// A part of a kernel_model. Thread-safe after construction.
class certain_accesses {
 public:
  /// The model must outlive the object. Adds expressions to the model's analysis, so no other thread may use the
  /// analysis.
  explicit certain_accesses(const kernel_model& kernel);

  /// Returns the accesses of a launch, which must have all parameters of the kernel. If an access has more than
  /// most_ranges ranges, returns some of its first and of its last ranges: at the borders of a field, which programs
  /// exchange.
  [[nodiscard]] std::vector<certain_access> of(const launch& l) const { return of(l, {{0, 0, 0}, l.grid}); }
  /// Returns the accesses of some blocks of the launch.
  [[nodiscard]] std::vector<certain_access> of(const launch& l, const subgrid& blocks) const;
  static constexpr std::size_t most_ranges = 128;

  /// Whether a write through the pointer `written` may run before the access with this number, in a launch.
  [[nodiscard]] bool may_follow_write(std::uint32_t number, std::uint32_t written) const;

 private:
  /// A comparison that must be true.
  struct need {
    ptx::analysis::comparison what;
    /// The loop in all whose iterations before the access the comparison must be true; empty: the comparison must be
    /// true in the iteration of the access.
    std::optional<std::uint32_t> earlier_in{};
  };
  struct known_access {
    const ptx::analysis::access* of = nullptr;
    std::uint32_t number = 0, pointer = 0;
    std::vector<std::uint32_t> loops;  // the loops that contain the access, outermost first
    std::vector<need> needs;
  };
  class launch_solver;

  void add(const ptx::analysis::access& a, std::uint32_t number);
  [[nodiscard]] bool add_ways(known_access& to, std::uint32_t from, std::uint32_t target,
                              std::optional<std::uint32_t> inside) const;
  [[nodiscard]] bool add_repetition(known_access& to, std::uint32_t loop) const;
  [[nodiscard]] bool add_stay(known_access& to, std::uint32_t block, const std::vector<bool>& good,
                              std::optional<std::uint32_t> earlier_in) const;

  const kernel_model& kernel_;
  std::vector<known_access> known_;
};

}  // namespace hpe::spread
