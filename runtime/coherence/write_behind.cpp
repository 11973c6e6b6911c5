#include "runtime/coherence/write_behind.h"

#include <algorithm>

namespace hpe::coherence {

void write_behind::reset(std::uint64_t blocks, std::uint64_t window, rolling_mode mode) {
  blocks_ = blocks;
  window_ = std::max<std::uint64_t>(window, 1);
  mode_ = mode;
  clock_ = 0;
  released();
}

void write_behind::released() {
  walks_.fill({});
  open_.clear();
  open_blocks_ = 0;
  uploaded_ = 0;
  mistakes_ = 0;
}

write_behind::liveness write_behind::live() const noexcept {
  liveness result;
  for (const walk& w : walks_) {
    if (!recent_one(w)) continue;
    ++result.walks;
    result.ahead += w.ahead;
  }
  return result;
}

std::uint64_t write_behind::most_ahead() const noexcept {
  const std::uint64_t share = window_ / std::max<std::uint64_t>(mistakes_ == 0 ? 8 : 16, 2 * live().walks);
  return std::max({share, std::min(window_ / 4, least_ahead), std::uint64_t{1}});
}

bool write_behind::given_up() const noexcept {
  return mistakes_ > tolerated_mistakes + uploaded_ / uploads_for_a_mistake;
}

write_behind::walk* write_behind::find_walk(std::uint64_t block) noexcept {
  // Take the nearest walk, because walks of several threads may come close to each other.
  walk* nearest = nullptr;
  for (walk& w : walks_)
    if (w.ahead != 0 && block >= w.next && block < w.next + slack && (nearest == nullptr || w.next > nearest->next))
      nearest = &w;
  return nearest;
}

block_run write_behind::take_oldest() {
  const auto in_use = [&](const opening& o) {
    return std::any_of(walks_.begin(), walks_.end(),
                       [&](const walk& w) { return recent_one(w) && w.latest == o.number; });
  };
  auto oldest = std::find_if_not(open_.begin(), open_.end(), in_use);
  if (oldest == open_.end()) oldest = open_.begin();
  const block_run result = oldest->run;
  open_.erase(oldest);
  return result;
}

write_behind::plan write_behind::touched(std::uint64_t block, bool uploaded_before,
                                         const std::function<bool(std::uint64_t)>& opens_freely) {
  plan result;
  if (mode_ == rolling_mode::never) return result;
  if (uploaded_before) ++mistakes_;
  ++clock_;

  walk* current = find_walk(block);
  const bool recognised = current != nullptr;
  if (recognised) {
    current->used = clock_;
    current->ahead = std::min(current->ahead * 2, most_ahead());
    result.open = {block + 1, block + 1};
    while (result.open.end < std::min(block + current->ahead, blocks_) && opens_freely(result.open.end))
      ++result.open.end;
  } else {
    current =
        &*std::min_element(walks_.begin(), walks_.end(), [](const walk& a, const walk& b) { return a.used < b.used; });
    current->ahead = 1;
  }
  current->next = std::max(result.open.end, block + 1);
  current->used = clock_;

  current->latest = clock_;
  open_.push_back({{block, current->next}, clock_});
  open_blocks_ += current->next - block;
  if (given_up() || !(recognised || mode_ == rolling_mode::always)) {
    // Without a pattern the list only records which blocks are open. It must not grow without bound.
    while (open_.size() > 4096) {
      open_blocks_ -= open_.front().run.end - open_.front().run.begin;
      open_.pop_front();
    }
    return result;
  }
  const liveness writers = live();
  // If several threads share a walk, they are still writing many of its last blocks, and some of these blocks are
  // uploaded too early. Each of these mistakes doubles the number of blocks that a single walk may leave open.
  const std::uint64_t for_one = most_for_one << std::min<std::uint64_t>(mistakes_, 16);
  const std::uint64_t share = writers.walks > 1 ? window_ : std::min(window_, for_one);
  const std::uint64_t most_open = std::max(share, 2 * writers.ahead);
  while (open_blocks_ > most_open && open_.size() > 1) {
    const block_run oldest = take_oldest();
    open_blocks_ -= oldest.end - oldest.begin;
    uploaded_ += oldest.end - oldest.begin;
    if (!result.upload.empty() && result.upload.back().end == oldest.begin) {
      result.upload.back().end = oldest.end;
    } else {
      result.upload.push_back(oldest);
    }
  }
  return result;
}

}  // namespace hpe::coherence
