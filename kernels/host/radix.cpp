// The kernels of sorting by radix for soft devices.

#include <string.h>

#include <type_traits>

#include "hpe/kernel.h"
#include "kernels/radix_parameters.h"

namespace hpe::kernels {

namespace {

template <class Key, uint32_t keys>
struct element {
  Key words[keys];
};

/// Calls body(element, order): `element` has the type of the sizes in `types`, and `order` is a constant with the value
/// of types.order.
template <class Body>
void with_types(const radix_types& types, const Body& body) {
  const auto with_order = [&](auto e) {
    switch (types.order) {
      case radix_order::without_sign: return body(e, std::integral_constant<radix_order, radix_order::without_sign>{});
      case radix_order::with_sign: return body(e, std::integral_constant<radix_order, radix_order::with_sign>{});
      case radix_order::floating: return body(e, std::integral_constant<radix_order, radix_order::floating>{});
    }
  };
  const bool pair = types.element != types.key;
  if (types.key == 4)
    pair ? with_order(element<uint32_t, 2>{}) : with_order(element<uint32_t, 1>{});
  else
    pair ? with_order(element<uint64_t, 2>{}) : with_order(element<uint64_t, 1>{});
}

/// Returns the key of an element as an unsigned number (radix_of).
template <radix_order order, class Key, uint32_t keys>
Key number_of(const element<Key, keys>& e) {
  return radix_of(e.words[0], order);
}

/// Returns the key of a splitter.
template <class Key>
Key as_key(uint64_t splitter) {
  return Key(splitter >> (64 - 8 * sizeof(Key)));
}

template <radix_order order, class Key, uint32_t keys>
void count_digits(const radix_digits_parameters& p, const element<Key, keys>* from, const element<Key, keys>* to) {
  const radix_splitters& s = *p.part.splitters;
  const uint32_t shift = 8 * sizeof(Key) - radix_bits * (p.digit + 1);
  // A block of elements stays in the first-level cache while it is counted for each splitter.
  constexpr int64_t block = 2048;
  uint64_t counts[radix_most_splitters][radix_digits];
  uint32_t counting[radix_most_splitters], counters = 0;
  for (uint32_t i = 0; i < p.part.splitter_count; ++i)
    if (s.rank[i] != 0 && s.counted_by(i) == i) counting[counters++] = i;
  memset(counts, 0, counters * sizeof counts[0]);
  for (; from < to; from += block) {
    const auto* const end = to - from < block ? to : from + block;
    for (uint32_t c = 0; c < counters; ++c) {
      const Key known = as_key<Key>(s.key[counting[c]]);
      for (const auto* e = from; e < end; ++e) {
        const Key rest = Key(number_of<order>(*e) - known) >> shift;
        if (rest < radix_digits) ++counts[c][rest];
      }
    }
  }
  for (uint32_t c = 0; c < counters; ++c)
    for (uint32_t d = 0; d < radix_digits; ++d)
      if (counts[c][d] != 0)
        __atomic_fetch_add(p.counts + counting[c] * radix_digits + d, counts[c][d], __ATOMIC_RELAXED);
}

/// Returns the class of a key (kernels/radix_parameters.h).
template <class Key>
class classifier {
 public:
  explicit classifier(const radix_part& part) : count_(part.splitter_count) {
    for (uint32_t i = 0; i < count_; ++i) splitters_[i] = as_key<Key>(part.splitters->key[i]);
  }
  [[nodiscard]] uint32_t operator()(Key key) const {
    uint32_t result = 0;
    for (uint32_t i = 0; i < count_; ++i) result += uint32_t(splitters_[i] < key) + uint32_t(splitters_[i] <= key);
    return result;
  }

 private:
  uint32_t count_;
  Key splitters_[radix_most_splitters];
};

/// Calls body(element, class) for each element of a tile, in order.
template <radix_order order, class Element, class Body>
void each_of(const radix_part& part, uint64_t tile, uint64_t tiles, const Element* elements, const Body& body) {
  const classifier<std::remove_cvref_t<decltype(elements->words[0])>> class_of(part);
  const Element* const end = elements + part.begin_of(tile + 1, tiles);
  for (const Element* e = elements + part.begin_of(tile, tiles); e < end; ++e) body(*e, class_of(number_of<order>(*e)));
}

/// Sorts `count` elements, digit by digit. other: an array of the same size. in_other: the result must be in `other`.
template <radix_order order, class Key, uint32_t keys>
void sort_by_digits(element<Key, keys>* from, element<Key, keys>* other, uint64_t count, bool in_other) {
  constexpr uint32_t digits = sizeof(Key) * 8 / radix_bits;
  uint64_t counts[digits][radix_digits] = {};
  for (uint64_t i = 0; i < count; ++i) {
    const Key key = number_of<order>(from[i]);
    for (uint32_t d = 0; d < digits; ++d) ++counts[d][key >> (d * radix_bits) & (radix_digits - 1)];
  }
  auto *here = from, *there = other;
  for (uint32_t d = 0; d < digits; ++d) {
    uint64_t* const places = counts[d];
    // If all keys have the same digit, this pass moves no element and is skipped.
    if (count == 0 || places[number_of<order>(here[0]) >> (d * radix_bits) & (radix_digits - 1)] == count) continue;
    uint64_t sum = 0;
    for (uint32_t v = 0; v < radix_digits; ++v) {
      const uint64_t own = places[v];
      places[v] = sum;
      sum += own;
    }
    for (uint64_t i = 0; i < count; ++i)
      there[places[number_of<order>(here[i]) >> (d * radix_bits) & (radix_digits - 1)]++] = here[i];
    auto* const next = here;
    here = there;
    there = next;
  }
  auto* const result = in_other ? other : from;
  if (here != result) memcpy(result, here, count * sizeof *here);
}

}  // namespace

HPE_HOST_KERNEL(radix_count_digits, radix_digits_parameters) {
  const radix_part& part = parameters->part;
  const uint64_t tiles_of_grid = tiles->grid[0];
  with_types(part.types, [&](auto e, auto order) {
    const auto* const elements = static_cast<const decltype(e)*>(part.elements);
    count_digits<order.value>(*parameters, elements + part.begin_of(tiles->begin, tiles_of_grid),
                              elements + part.begin_of(tiles->end, tiles_of_grid));
  });
}

HPE_HOST_KERNEL(radix_choose_digits, radix_choice_parameters) {
  if (tiles->begin != 0) return;
  const radix_choice_parameters& p = *parameters;
  radix_splitters& s = *p.splitters;
  // Processes the last splitter first, because counted_by compares a splitter's digits with those of earlier splitters.
  for (uint32_t i = p.splitter_count; i-- > 0;) {
    if (s.rank[i] == 0) continue;
    const uint32_t from = s.counted_by(i) * radix_digits;
    uint64_t digit = 0;
    for (;; ++digit) {
      uint64_t here = 0;
      for (uint32_t d = 0; d < p.devices; ++d) here += p.counts[d][from + digit];
      if (s.rank[i] < here || digit == radix_digits - 1) break;
      s.rank[i] -= here;
    }
    s.key[i] |= digit << (64 - radix_bits * (p.digit + 1));
  }
}

HPE_HOST_KERNEL(radix_count_classes, radix_classes_parameters) {
  const radix_part& part = parameters->part;
  with_types(part.types, [&](auto e, auto order) {
    for (uint64_t tile = tiles->begin; tile < tiles->end; ++tile) {
      uint64_t counts[2 * radix_most_splitters + 1] = {};
      each_of<order.value>(part, tile, tiles->grid[0], static_cast<const decltype(e)*>(part.elements),
                           [&](const auto&, uint32_t c) { ++counts[c]; });
      for (uint32_t c = 0; c < parameters->classes(); ++c)
        parameters->offsets[c * uint64_t{tiles->grid[0]} + tile] = counts[c];
    }
  });
}

HPE_HOST_KERNEL(radix_offsets, radix_offsets_parameters) {
  if (tiles->begin != 0) return;
  uint64_t sum = 0;
  for (uint32_t c = 0; c < parameters->classes; ++c)
    for (uint32_t d = 0; d < parameters->devices; ++d)
      for (uint32_t t = 0; t < parameters->tiles[d]; ++t) {
        uint64_t& place = parameters->offsets[d][c * uint64_t{parameters->tiles[d]} + t];
        const uint64_t own = place;
        place = sum;
        sum += own;
      }
}

HPE_HOST_KERNEL(radix_move, radix_classes_parameters) {
  const radix_part& part = parameters->part;
  with_types(part.types, [&](auto e, auto order) {
    using element_type = decltype(e);
    auto* const to = static_cast<element_type*>(parameters->to);
    for (uint64_t tile = tiles->begin; tile < tiles->end; ++tile) {
      element_type* next[2 * radix_most_splitters + 1];
      for (uint32_t c = 0; c < parameters->classes(); ++c)
        next[c] = to + parameters->offsets[c * uint64_t{tiles->grid[0]} + tile];
      each_of<order.value>(part, tile, tiles->grid[0], static_cast<const element_type*>(part.elements),
                           [&](const element_type& moved, uint32_t c) { *next[c]++ = moved; });
    }
  });
}

HPE_HOST_KERNEL(radix_sort_ranges, radix_ranges_parameters) {
  const radix_ranges_parameters& p = *parameters;
  with_types(p.types, [&](auto e, auto order) {
    using element_type = decltype(e);
    for (uint64_t r = tiles->begin; r < tiles->end; ++r)
      sort_by_digits<order.value>(static_cast<element_type*>(p.elements) + p.bounds[r],
                                  static_cast<element_type*>(p.other) + p.bounds[r], p.bounds[r + 1] - p.bounds[r],
                                  p.in_other != 0);
  });
}

}  // namespace hpe::kernels
