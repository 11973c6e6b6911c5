#pragma once

/// Predicts which memory the work of a device uses next, if the work repeats itself, as training steps, decoding and
/// solvers do. The memory that one piece of work uses is a *step*. The object keeps the latest steps as hashes. If each
/// of the latest steps equals the step at a constant distance before it, this distance is the period of a cycle. The
/// object then predicts that the steps of the latest period come again. The first step that differs from the prediction
/// ends the cycle. Pure bookkeeping with bounded memory; not thread-safe.

#include <cstdint>
#include <vector>

#include "runtime/coherence/access_order.h"

namespace hpe::work {

class use_cycle {
 public:
  /// The longest period is shorter than this number of steps, and its steps have fewer uses than `most_uses`.
  static constexpr std::uint64_t most_steps = 32768;
  static constexpr std::uint64_t most_uses = 262144;

  /// Adds bytes of a region to the current step. The first call of use() or end_step() allocates all memory. If that
  /// fails, nothing has changed.
  void use(std::uint32_t region, coherence::byte_range bytes);
  void end_step();

  /// The number of steps in the cycle; 0 if no cycle is known.
  [[nodiscard]] std::uint64_t period() const noexcept { return is_known() ? period_ : 0; }
  /// The number of steps until a step uses some of these bytes: 1 for the next step; 0 if no step of the cycle uses
  /// them. Only while a cycle is known. The first call for a cycle sorts its uses.
  [[nodiscard]] std::uint64_t steps_until_use(std::uint32_t region, coherence::byte_range bytes);

 private:
  struct step {
    std::uint64_t hash = 0;
    std::uint64_t first_use = 0;
  };
  struct region_bytes {
    std::uint32_t region = 0;
    coherence::byte_range bytes;
  };
  struct place {
    std::uint64_t hash = 0;      // hash of several steps; the last of them is `step`
    std::uint64_t step = ~0ULL;  // none
  };
  /// A use in the cycle. `phase`: the number of the step, modulo the period.
  struct predicted {
    region_bytes what;
    std::uint64_t phase = 0;
  };
  /// The uses of the same bytes in the cycle: cycle_[first] to cycle_[last - 1], by phase.
  struct same_uses {
    region_bytes what;
    std::uint64_t furthest_end = 0;  // the largest end of these bytes and of all bytes of the region before them in the
                                     // list
    std::size_t first = 0, last = 0;
  };

  void allocate();
  [[nodiscard]] bool is_known() const noexcept;
  /// Whether the rings contain the step `number` and its uses.
  [[nodiscard]] bool has(std::uint64_t number) const noexcept;
  [[nodiscard]] std::uint64_t hash_of_latest(std::uint64_t last) const noexcept;
  void find_uses();

  // Rings, by the number of the step or of the use.
  std::vector<step> steps_;
  std::vector<region_bytes> uses_;
  std::vector<place> places_;  // where each sequence of steps was last seen, by its hash
  std::uint64_t step_count_ = 0;
  std::uint64_t use_count_ = 0;
  std::uint64_t first_use_ = 0;   // of the current step
  std::uint64_t hash_ = 0;        // of the current step
  std::uint64_t period_ = 0;      // the distance at which steps are compared; 0: none
  std::uint64_t equal_ = 0;       // how many of the latest steps equal the step before them at this distance
  std::vector<predicted> cycle_;  // by region, bytes and phase; valid if has_cycle_
  std::vector<same_uses> same_;   // likewise
  bool has_cycle_ = false;
};

}  // namespace hpe::work
