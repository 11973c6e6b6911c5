#pragma once

#include <cstdint>

namespace hpe {

/// A position in the work of one stream. It is reached when the stream's first `value` commands have finished. Plain
/// data, so that code can decide on the order of work without access to devices. Timeline 0 means "nothing to wait
/// for"; a point of this timeline is always reached.
struct timepoint {
  std::uint32_t timeline = 0;
  std::uint64_t value = 0;

  [[nodiscard]] bool none() const noexcept { return timeline == 0; }
  friend bool operator==(const timepoint&, const timepoint&) = default;
};

}  // namespace hpe
