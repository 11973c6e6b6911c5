#pragma once

/// interval_map: disjoint half-open ranges [begin, end) of keys, each with a value. find_containing: the same search in
/// a std::map whose values know the sizes of their ranges.
///
/// interval_map is built on std::map: a search takes logarithmic time; iterators and references stay valid until their
/// interval is erased or merged. Not thread-safe. Callers must pass begin < end.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

namespace hpe {

template <class Key, class Value>
class interval_map {
 public:
  /// The end and the value of an interval; the key of the std::map is the first key of the interval.
  struct interval {
    Key end;
    Value value;
  };
  using map = std::map<Key, interval>;
  using iterator = typename map::iterator;
  using const_iterator = typename map::const_iterator;

  [[nodiscard]] iterator begin() noexcept { return all_.begin(); }
  [[nodiscard]] iterator end() noexcept { return all_.end(); }
  [[nodiscard]] const_iterator begin() const noexcept { return all_.begin(); }
  [[nodiscard]] const_iterator end() const noexcept { return all_.end(); }
  [[nodiscard]] bool empty() const noexcept { return all_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }
  void clear() noexcept { all_.clear(); }

  /// Returns the interval that contains the key; if no interval does, the first interval after the key.
  [[nodiscard]] iterator from(Key at) { return from_in(all_, at); }
  [[nodiscard]] const_iterator from(Key at) const { return from_in(all_, at); }

  /// Returns the interval that contains the key; end() if no interval does.
  [[nodiscard]] iterator find(Key at) { return find_in(all_, at); }
  [[nodiscard]] const_iterator find(Key at) const { return find_in(all_, at); }

  /// Whether any interval overlaps the range.
  [[nodiscard]] bool overlaps(Key begin, Key end) const {
    const auto first = from(begin);
    return first != all_.end() && first->first < end;
  }

  /// Adds an interval, which must not overlap any other. Does not merge the interval with its neighbours.
  iterator insert(Key begin, Key end, Value value) {
    return all_.emplace(begin, interval{end, std::move(value)}).first;
  }

  /// Adds an interval, which must not overlap any other, and merges it with adjacent intervals that have an equal
  /// value.
  iterator insert_merged(Key begin, Key end, Value value) {
    auto next = all_.lower_bound(begin);
    if (next != all_.begin()) {
      const auto before = std::prev(next);
      if (before->second.end == begin && before->second.value == value) {
        before->second.end = end;
        return merge_with_next(before);
      }
    }
    return merge_with_next(all_.emplace_hint(next, begin, interval{end, std::move(value)}));
  }

  /// Splits the interval that contains the key into two, unless the interval begins at the key. Returns the first
  /// interval that begins at or after the key.
  iterator split(Key at) {
    const auto found = from(at);
    if (found == all_.end() || !(found->first < at)) return found;
    const auto tail = all_.emplace_hint(std::next(found), at, found->second);
    found->second.end = at;
    return tail;
  }

  /// Erases the range; the parts of intervals outside the range remain.
  void erase(Key begin, Key end) {
    const auto last = split(end);
    all_.erase(split(begin), last);
  }
  iterator erase(const_iterator position) { return all_.erase(position); }

  /// Calls visit(begin, end, value) for the part of each interval inside the range, in ascending order.
  template <class Visit>
  void for_each(Key begin, Key end, const Visit& visit) const {
    for (auto at = from(begin); at != all_.end() && at->first < end; ++at)
      visit(std::max(at->first, begin), std::min(at->second.end, end), at->second.value);
  }

 private:
  template <class Map>
  static auto from_in(Map& all, Key at) {
    const auto after = all.upper_bound(at);
    if (after == all.begin()) return after;
    const auto before = std::prev(after);
    return at < before->second.end ? before : after;
  }
  template <class Map>
  static auto find_in(Map& all, Key at) {
    const auto found = from_in(all, at);
    return found != all.end() && at < found->first ? all.end() : found;
  }
  iterator merge_with_next(iterator here) {
    const auto next = std::next(here);
    if (next != all_.end() && next->first == here->second.end && next->second.value == here->second.value) {
      here->second.end = next->second.end;
      all_.erase(next);
    }
    return here;
  }

  map all_;  // by first key
};

/// Searches a map of disjoint ranges, whose keys are the ranges' first addresses: returns the entry of the range that
/// contains an address; end() if no range does. `size` returns the number of bytes of an entry's value, for example
/// &allocation::bytes.
template <class Map, class Size>
[[nodiscard]] auto find_containing(Map& ranges, typename Map::key_type address, Size size) {
  const auto after = ranges.upper_bound(address);
  if (after == ranges.begin()) return ranges.end();
  const auto found = std::prev(after);
  return address - found->first < std::invoke(size, found->second) ? found : ranges.end();
}

}  // namespace hpe
