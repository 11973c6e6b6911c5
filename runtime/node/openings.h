#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <variant>

#include "runtime/base/interval_map.h"

namespace hpe::node {

/// Records which bytes of one memory other processes have open, and which bytes these processes may have written. A
/// process that has bytes open may write them at any time, so these bytes count as written until the process has closed
/// them and take_written() has been called for them afterwards. This class only keeps records, and has no lock. Ranges
/// are [begin, end) with begin < end.
class openings {
 public:
  void open(std::uint64_t begin, std::uint64_t end);
  /// Ends an opening of exactly these bytes.
  void close(std::uint64_t begin, std::uint64_t end) noexcept;

  [[nodiscard]] bool any() const noexcept { return !open_.empty(); }
  [[nodiscard]] bool any(std::uint64_t begin, std::uint64_t end) const noexcept;

  /// Whether another process may have written some of the bytes since the last take_written() of these bytes: the
  /// process has them open, or had them open since then.
  [[nodiscard]] bool written(std::uint64_t begin, std::uint64_t end) const;
  /// Returns written(). Afterwards, the bytes do not count as written, except those that are open. If the result is
  /// true, the caller makes the home's copy the valid copy.
  [[nodiscard]] bool take_written(std::uint64_t begin, std::uint64_t end);
  /// Marks all bytes of the memory as written. Must be called if take_written() returned true and the caller could not
  /// make the home's copy the valid copy.
  void untake() noexcept { all_written_ = true; }

 private:
  using ranges = interval_map<std::uint64_t, std::monostate>;
  static void add(ranges& to, std::uint64_t begin, std::uint64_t end);

  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> open_;  // how many times each range is open
  ranges written_;                                                         // includes all open ranges
  bool all_written_ = false;
};

}  // namespace hpe::node
