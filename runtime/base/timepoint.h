#pragma once

#include <cstdint>

namespace hpe {

/// A position in the work of one stream: reached once the stream's first `value` commands have finished.
/// Pure data, so that the order of work can be decided without knowing devices. timeline 0 means "nothing to
/// wait for", which is always reached.
struct timepoint {
  std::uint32_t timeline = 0;
  std::uint64_t value = 0;

  [[nodiscard]] bool none() const noexcept { return timeline == 0; }
  friend bool operator==(const timepoint&, const timepoint&) = default;
};

}  // namespace hpe
