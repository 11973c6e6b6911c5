#pragma once

/// Which work last wrote each byte of an allocation, and which work has read it since. Finds accesses to the same bytes
/// that no order relates and that conflict: at least one writes, and not both are atomic or strong.
///
/// As long as a program has no such pair, the history does not depend on the order in which unrelated work runs. If it
/// has one, at least one pair is found, in whatever order that the program's own order allows the accesses are added.
/// Not thread-safe.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace hpe::check {

/// `strong_read`: a load with which programs wait for other threads. It conflicts only with a plain write.
enum class use : std::uint8_t { read, write, atomic, strong_read };
/// Whether two accesses of the same bytes need an order.
[[nodiscard]] bool conflicts_with(use a, use b) noexcept;

/// A place in some work that accesses memory, such as an instruction of a launch (checker.h).
struct actor;
using actor_ptr = std::shared_ptr<const actor>;

/// Bytes [begin, end) that an actor accesses.
struct touched {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  const actor_ptr* by = nullptr;  // not a copy, because launches touch many ranges
};

class byte_history {
 public:
  /// Returns whether the earlier work has certainly ended before the later work begins, or whether both are the same.
  using order_function = std::function<bool(const actor& earlier, const actor& later)>;
  /// Receives a range of bytes with the same history, and an earlier access that conflicts with the new one. `earlier`
  /// is null if the new access reads bytes that nothing has written.
  using conflict_function =
      std::function<void(std::uintptr_t begin, std::uintptr_t end, const actor_ptr& by, const actor* earlier, use how)>;

  /// The history of the allocation [base, base + bytes). `is_written`: whether its bytes count as written. `allocated`:
  /// the work that allocates, with which uses of the bytes conflict as with a write; null if it precedes all uses.
  byte_history(std::uintptr_t base, std::size_t bytes, bool is_written, actor_ptr allocated = nullptr);

  /// Adds accesses of one kind by one work, in ascending order and without overlaps. Ignores bytes outside of the
  /// allocation. `expects_written`: whether a read of bytes that nothing has written is a conflict; if one is found,
  /// the bytes count as written from then on.
  void add(std::span<const touched> what, use how, bool expects_written, const order_function& is_ordered,
           const conflict_function& found);
  /// Whether nothing has written any byte of the range.
  [[nodiscard]] bool is_fresh(std::uintptr_t begin, std::uintptr_t end) const;
  /// Marks all bytes of a range as written by work that is ordered with all other work.
  void set_written(std::uintptr_t begin, std::uintptr_t end);

  /// Visits the accesses that no later access has replaced, in ascending order of their bytes.
  void visit(const std::function<void(const touched& what, use how)>& visitor) const;

  [[nodiscard]] std::uintptr_t base() const noexcept { return base_; }
  [[nodiscard]] std::uintptr_t end() const noexcept { return base_ + bytes_; }

 private:
  struct access {
    actor_ptr by;
    use how = use::read;
    friend bool operator==(const access&, const access&) = default;
  };
  struct state {
    bool is_written = false;
    std::vector<access> accesses;
  };
  struct run {
    std::uint32_t begin;  // an offset in the page; the run ends where the next one begins
    const state* what;    // in states_
  };
  using page = std::vector<run>;  // empty: all bytes are in the first state
  class changes;                  // computes the states after one call of add()

  // An allocation has at most this number of pages, so that work on all of its bytes does not take long.
  static constexpr std::size_t most_pages = 256, smallest_page = 4096;

  [[nodiscard]] const state* keep(state made);
  void forget_unused();
  template <class Next>
  void replace(page& in, std::uintptr_t page_begin, std::span<const touched> what, Next& next);
  template <class Next>
  void replace_all(std::span<const touched> what, Next& next);

  std::uintptr_t base_;
  std::size_t bytes_;
  std::size_t page_bytes_;
  std::vector<std::unique_ptr<const state>> states_;  // [0] is the first state of all bytes
  std::size_t most_states_;                           // when states_ is larger, forget_unused() is called
  std::vector<page> pages_;
  page made_;  // memory for replace()
};

}  // namespace hpe::check
