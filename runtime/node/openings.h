#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <variant>

#include "runtime/base/interval_map.h"

namespace hpe::node {

/// Records which bytes of one memory other processes have open, and which of them they may have written. A process that
/// has bytes open may write them at any time, so these bytes count as written until the process has closed them and
/// take_written has taken them afterwards. This class only keeps records, and has no lock. Ranges are [begin, end) with
/// begin < end.
class openings {
 public:
  void open(std::uint64_t begin, std::uint64_t end);
  /// Ends an opening of exactly these bytes.
  void close(std::uint64_t begin, std::uint64_t end) noexcept;

  [[nodiscard]] bool any() const noexcept { return !open_.empty(); }
  [[nodiscard]] bool any(std::uint64_t begin, std::uint64_t end) const noexcept;

  /// Whether another process may have written some of the bytes since they were last taken: the process has them open,
  /// or had them open since then.
  [[nodiscard]] bool written(std::uint64_t begin, std::uint64_t end) const;
  /// Returns written(), and takes the bytes, so that they no longer count as written. The caller then makes the home's
  /// copy the valid copy.
  [[nodiscard]] bool take_written(std::uint64_t begin, std::uint64_t end);
  /// Counts all bytes as written again. Must be called if the caller has taken bytes but could not make the home's copy
  /// the valid copy.
  void untake() noexcept { all_written_ = true; }

 private:
  using ranges = interval_map<std::uint64_t, std::monostate>;
  static void add(ranges& to, std::uint64_t begin, std::uint64_t end);

  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> open_;  // how many times each range is open
  ranges written_;                                                         // includes all open ranges
  bool all_written_ = false;
};

}  // namespace hpe::node
