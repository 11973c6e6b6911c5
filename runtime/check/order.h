#pragma once

/// The order of device work: which work has certainly ended before other work begins. Work is appended to lines; a line
/// (a CUDA stream) runs its work in sequence. Further order comes from events and from waits of CPU code. The class is
/// a set of vector clocks, but all CPU threads together have one clock: when one thread has waited for work, this work
/// is ordered before all work that any thread queues later, because hpe does not see how CPU threads synchronise with
/// each other. So this class may treat unordered work as ordered, but never ordered work as unordered.
///
/// Not thread-safe.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace hpe::check {

/// A position in a line: the work with this number. The numbers of a line begin with 1.
struct moment {
  std::uint32_t line = 0;
  std::uint64_t number = 0;
  friend bool operator==(const moment&, const moment&) = default;
};

/// A wait for values in memory. When it has ended, it may be known which work has written the values. Until then, and
/// if it is not known, all work counts as ordered before the end of the wait.
struct value_wait {
  enum class state : std::uint8_t { pending, known, unknown };
  state is = state::pending;
  std::uint64_t host = 0;         ///< the version of the CPU threads' clock when the wait has ended
  std::vector<moment> further{};  ///< as past::further, of the work that has written the values
};

/// What is ordered before the end of some work, this work included.
struct past {
  moment self;
  std::uint64_t host = 0;  ///< the version of the CPU threads' clock when the work was queued
  bool after_all = false;  ///< hpe cannot tell for what the work waits, so all earlier work counts as ordered
  std::vector<moment>
      further;  ///< the last moment of each line that the CPU threads' clock does not contain; ascending
  std::shared_ptr<value_wait> own_wait{};            ///< null: the work does not wait for values
  std::vector<std::shared_ptr<value_wait>> waits{};  ///< those that were pending when the work was queued; with the own
};
using past_ptr = std::shared_ptr<const past>;

class work_order {
 public:
  /// Adds a line without work, and returns its number.
  std::uint32_t add_line();

  /// Appends work to a line. The work begins when the earlier work of the line and all of `after` have ended; null
  /// pointers are ignored.
  /// `after_all`: the work, and all work that is ordered after it, counts as ordered after everything else.
  /// `waits_for_values`: see end_value_wait().
  past_ptr queue(std::uint32_t line, std::span<const past_ptr> after = {}, bool after_all = false,
                 bool waits_for_values = false);
  /// Work has seen the values in memory for which it waited. `writers`: the work that has written them; empty: unknown.
  void end_value_wait(const past& waiting, std::span<const past_ptr> writers);

  /// Returns the past of a part of some work, which CPU code executes now.
  [[nodiscard]] past_ptr part_now(const past& of) const;

  /// Returns the past of the last work of a line; null if the line has no work.
  [[nodiscard]] past_ptr last(std::uint32_t line) const { return lines_[line].last; }

  /// Records that a CPU thread has waited for the end of some work. Null is ignored.
  void wait(const past_ptr& ended);
  /// Records that a CPU thread has waited for all work that is ordered before the begin of this work.
  void wait_for_begin(const past& begun);

  /// Returns whether the work at `earlier` has certainly ended before the work with this past begins. Work that is the
  /// same, or that was queued later than the work with this past, is not ordered before it.
  [[nodiscard]] bool is_ordered(moment earlier, const past& later) const;
  /// Returns whether a CPU thread has waited for this work or for later work of its line.
  [[nodiscard]] bool has_waited(moment work) const { return lines_[work.line].waited >= work.number; }

 private:
  struct step_of_host {
    std::uint64_t number;   // the line's work up to this number ...
    std::uint64_t version;  // ... is in the CPU threads' clock from this version on
  };
  struct line_state {
    std::uint64_t queued = 0;
    std::uint64_t waited = 0;           // the number of the last step
    std::vector<step_of_host> steps{};  // both members ascend
    past_ptr last{};
  };

  /// Whether a list of moments contains the work, or a CPU thread had waited for it at a version of the clock.
  [[nodiscard]] bool contains(std::span<const moment> further, std::uint64_t host, moment work) const;

  std::vector<line_state> lines_;
  std::uint64_t host_ = 0;
};

}  // namespace hpe::check
