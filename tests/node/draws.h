#pragma once

/// The random choices of a sequence of operations.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>

#include "runtime/base/granule.h"
#include "tests/node/contents.h"

namespace node_test {

class draws {
 public:
  /// One of `long_ones` ranges for kernels is the whole range from which it is drawn.
  draws(std::uint64_t seed, std::size_t long_ones) : random_(seed), long_ones_(long_ones) {}

  std::uint64_t number() { return random_(); }
  std::size_t below(std::size_t limit) { return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_); }
  bool one_in(std::size_t n) { return below(n) == 0; }
  template <class List>
  auto& any_of(List& list) {
    return list[below(std::size(list))];
  }

  /// Returns a part of the range `within` of an allocation; its offset counts from the beginning of `within`. Most
  /// parts are short. They are in the range of the latest write or near one of a few offsets, so that the ranges of
  /// different operations often overlap.
  range part_of(const contents& of, const range& within) {
    constexpr std::size_t most_bytes = 6000;
    if (one_in(2000)) return {0, within.bytes};
    const std::size_t begin = std::max(of.latest.begin, within.begin);
    const std::size_t end = std::min(of.latest.begin + of.latest.bytes, within.begin + within.bytes);
    if (begin < end && one_in(2)) return {begin - within.begin, std::min(end - begin, most_bytes)};
    return at_few_places(within.bytes, one_in(2) ? 200 : most_bytes);
  }
  range part_of(const contents& of) { return part_of(of, of.whole()); }
  /// Like part_of, but returns a range of whole 32-bit words for a kernel, or an empty range if the part contains no
  /// whole word. `within` begins at a word.
  range words_of(const contents& of, const range& within) {
    constexpr std::size_t word = sizeof(std::uint32_t);
    const range found = one_in(long_ones_) ? range{0, within.bytes} : part_of(of, within);
    return {found.begin / word * word, found.bytes / word * word};
  }
  range words_of(const contents& of) { return words_of(of, of.whole()); }

 private:
  range at_few_places(std::size_t size, std::size_t most_bytes) {
    constexpr std::size_t around = 300;
    const std::array places{std::size_t{0}, size / 3, hpe::granule_size, size};
    std::size_t begin = std::min(any_of(places), size - 1);
    begin -= std::min(begin, below(around));
    begin = std::min(begin + below(around), size - 1);
    return {begin, 1 + below(std::min(size - begin, most_bytes))};
  }

  std::mt19937_64 random_;
  const std::size_t long_ones_;
};

}  // namespace node_test
