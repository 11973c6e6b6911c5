#include "runtime/coherence/access_order.h"

#include <algorithm>

// Invariants: uses_ is empty (size_ == 0) or its first key is 0; an entry covers the offsets up to the next key or
// size_; neighbouring entries differ.

namespace hpe::coherence {

void point_set::add(timepoint point) {
  if (point.none()) return;
  const auto place = std::lower_bound(points_.begin(), points_.end(), point.timeline,
                                      [](const timepoint& a, std::uint32_t timeline) { return a.timeline < timeline; });
  if (place != points_.end() && place->timeline == point.timeline) {
    place->value = std::max(place->value, point.value);
  } else {
    points_.insert(place, point);
  }
}

void point_set::add(const point_set& other) {
  for (const timepoint& point : other.points_) add(point);
}

bool point_set::has(std::uint32_t timeline) const noexcept {
  return std::any_of(points_.begin(), points_.end(), [&](const timepoint& p) { return p.timeline == timeline; });
}

bool point_set::covers(timepoint point) const noexcept {
  return std::any_of(points_.begin(), points_.end(),
                     [&](const timepoint& p) { return p.timeline == point.timeline && p.value >= point.value; });
}

void point_set::remove_timelines(const point_set& of) {
  std::erase_if(points_, [&](const timepoint& p) { return of.has(p.timeline); });
}

void access_order::range_users::forget(const point_set& points) {
  if (points.has(writer.timeline)) writer = {};
  readers.remove_timelines(points);
  concurrent.remove_timelines(points);
}

void access_order::reset(std::uint64_t size) {
  uses_.clear();
  looked_at_ = 0;
  size_ = size;
  if (size != 0) uses_.emplace(0, range_users{});
}

access_order::map::iterator access_order::split(std::uint64_t offset) {
  if (offset >= size_) return uses_.end();
  const auto after = uses_.upper_bound(offset);
  const auto at = std::prev(after);
  if (at->first == offset) return at;
  return uses_.emplace_hint(after, offset, at->second);
}

void access_order::merge_around(std::uint64_t begin, std::uint64_t end) {
  auto at = uses_.find(begin);
  if (at != uses_.begin()) --at;
  while (true) {
    const auto next = std::next(at);
    if (next == uses_.end() || next->first > end) return;
    if (next->second == at->second) {
      uses_.erase(next);
    } else {
      at = next;
    }
  }
}

template <class Add>
void access_order::for_each(byte_range range, const Add& add) const {
  if (range.empty() || size_ == 0) return;
  for (auto at = std::prev(uses_.upper_bound(range.begin)); at != uses_.end() && at->first < range.end; ++at) {
    add(at->second);
    ++looked_at_;
  }
}

template <class Change>
void access_order::change(byte_range range, timepoint point, const Change& apply) {
  if (range.empty() || point.none()) return;
  const auto first = split(range.begin);
  const auto last = split(range.end);
  for (auto at = first; at != last; ++at) {
    apply(at->second);
    ++looked_at_;
  }
  merge_around(range.begin, range.end);
}

void access_order::before_read(byte_range range, point_set& result) const {
  for_each(range, [&](const range_users& u) {
    result.add(u.writer);
    result.add(u.concurrent);
  });
  if (anywhere_ != nullptr) anywhere_->add_users(homes_, result);
}

void access_order::before_write(byte_range range, point_set& result) const {
  for_each(range, [&](const range_users& u) {
    result.add(u.writer);
    result.add(u.readers);
    result.add(u.concurrent);
  });
  if (anywhere_ != nullptr) anywhere_->add_users(homes_, result);
}

void access_order::before_concurrent(byte_range range, point_set& result) const {
  for_each(range, [&](const range_users& u) {
    result.add(u.writer);
    result.add(u.readers);
  });
}

void access_order::record_read(byte_range range, timepoint point) {
  change(range, point, [&](range_users& u) { u.readers.add(point); });
  if (anywhere_ != nullptr) anywhere_->note_named(homes_, point);
}

void access_order::record_concurrent(byte_range range, timepoint point) {
  change(range, point, [&](range_users& u) { u.concurrent.add(point); });
}

void access_order::record_write(byte_range range, timepoint point) {
  if (range.empty() || point.none()) return;
  const auto first = split(range.begin);
  const auto last = split(range.end);
  first->second = range_users{point, {}, {}};
  uses_.erase(std::next(first), last);
  merge_around(range.begin, range.end);
  if (anywhere_ != nullptr) anywhere_->note_named(homes_, point);
}

void access_order::record_writes(byte_range range, std::span<const timepoint> points) {
  record_write(range, points.front());
  // An entry has only one writer. The other points are recorded both as readers and as concurrent work, because later
  // work of every kind waits for such a point.
  for (const timepoint point : points.subspan(1)) {
    record_read(range, point);
    record_concurrent(range, point);
  }
}

point_set access_order::latest() const {
  point_set all;
  for (const auto& [begin, u] : uses_) {
    all.add(u.writer);
    all.add(u.readers);
    all.add(u.concurrent);
  }
  return all;
}

bool access_order::crowded() const noexcept {
  // forget() takes about as long as several visits of each range, and on GPUs also a microsecond for each command that
  // was not known to have finished. So forget() is not worth a call for a small number of ranges.
  constexpr std::uint64_t many = 256, times = 8;
  return uses_.size() >= many && looked_at_ > times * uses_.size();
}

void access_order::forget(const std::function<bool(timepoint)>& reached) {
  looked_at_ = 0;
  const point_set last = latest();
  point_set gone;
  for (const timepoint point : last.points())
    if (reached(point)) gone.add(point);
  if (gone.empty()) return;
  for (auto& [begin, u] : uses_) u.forget(gone);
  merge_around(0, size_);
}

}  // namespace hpe::coherence
