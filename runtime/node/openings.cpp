#include "runtime/node/openings.h"

#include <algorithm>
#include <limits>

namespace hpe::node {

void openings::add(ranges& to, std::uint64_t begin, std::uint64_t end) {
  while (begin < end) {
    const auto next = to.from(begin);
    const bool covered = next != to.end() && next->first <= begin;
    const std::uint64_t stop = covered ? next->second.end : (next == to.end() ? end : std::min(end, next->first));
    if (!covered) to.insert_merged(begin, stop, {});
    begin = stop;
  }
}

void openings::open(std::uint64_t begin, std::uint64_t end) {
  add(written_, begin, end);
  ++open_[{begin, end}];
}

void openings::close(std::uint64_t begin, std::uint64_t end) noexcept {
  const auto found = open_.find({begin, end});
  if (found != open_.end() && --found->second == 0) open_.erase(found);
}

bool openings::any(std::uint64_t begin, std::uint64_t end) const noexcept {
  return std::ranges::any_of(open_,
                             [&](const auto& each) { return each.first.first < end && begin < each.first.second; });
}

bool openings::written(std::uint64_t begin, std::uint64_t end) const {
  return all_written_ || written_.overlaps(begin, end);
}

bool openings::take_written(std::uint64_t begin, std::uint64_t end) {
  if (!written(begin, end)) return false;
  ranges left = written_;
  if (all_written_) add(left, 0, std::numeric_limits<std::uint64_t>::max());
  left.erase(begin, end);
  for (const auto& [range, times] : open_)
    if (range.first < end && begin < range.second) add(left, std::max(range.first, begin), std::min(range.second, end));
  written_ = std::move(left);
  all_written_ = false;
  return true;
}

}  // namespace hpe::node
