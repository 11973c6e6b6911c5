#include "runtime/coherence/read_ahead.h"

#include <algorithm>

namespace hpe::coherence {

void read_ahead::reset(std::uint64_t blocks, std::uint64_t window) noexcept {
  walks_.fill({});
  blocks_ = blocks;
  limit_ = window;
  lone_touches_ = 0;
}

bool read_ahead::is_marker(std::uint64_t block) const noexcept {
  return std::any_of(walks_.begin(), walks_.end(), [&](const walk& w) { return w.window != 0 && w.marker == block; });
}

std::uint64_t read_ahead::walked(std::uint64_t next) const noexcept {
  const auto its =
      std::find_if(walks_.begin(), walks_.end(), [&](const walk& w) { return w.window != 0 && w.next == next; });
  return its == walks_.end() ? 0 : next - its->begin;
}

block_run read_ahead::touched(std::uint64_t block, bool alone) noexcept {
  const auto count = [&](bool lone) {
    lone_touches_ = lone ? lone_touches_ + 1 : std::max<std::uint64_t>(lone_touches_, 1) - 1;
  };
  if (limit_ == 0) {
    count(alone);
    return {};
  }
  ++clock_;

  for (walk& w : walks_) {
    if (w.window == 0) continue;
    const bool at_marker = block == w.marker;
    if (!at_marker && (block < w.next || block >= w.next + slack)) continue;
    count(false);
    // The walk continues: the next window is twice as large, up to the limit. When the host touches the new marker, the
    // window after this one is requested.
    const std::uint64_t from = w.next;
    const std::uint64_t ahead = at_marker ? w.next : block + 1;
    w.window = std::min(w.window * 2, limit_);
    w.next = std::min(ahead + w.window, blocks_);
    w.marker = ahead < blocks_ ? ahead : none;
    w.used = clock_;
    return {from, w.next};
  }

  count(alone);
  walk& oldest =
      *std::min_element(walks_.begin(), walks_.end(), [](const walk& a, const walk& b) { return a.used < b.used; });
  oldest = {block, block + 1, 1, none, clock_};
  return {};
}

}  // namespace hpe::coherence
