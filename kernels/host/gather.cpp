// The kernels of gather and scatter for soft devices. Memory accesses limit the speed of these kernels; therefore, they
// are compiled for one instruction set only.

#include "kernels/gather.h"

#include <emmintrin.h>
#include <string.h>

#include <type_traits>

#include "hpe/kernel.h"

namespace hpe::kernels {

namespace {

constexpr uint64_t line_bytes = 64;

/// An element of `bytes` bytes, which the kernels only copy.
template <uint32_t bytes>
struct alignas(bytes < 16 ? bytes : 16) element {
  uint32_t words[bytes / 4];
};

/// Calls body(element, index) with arguments of the types whose sizes are in `types`.
template <class Body>
void with_types(const gather_types& types, const Body& body) {
  const auto with_index = [&](auto index) {
    switch (types.element) {
      case 4: return body(element<4>{}, index);
      case 8: return body(element<8>{}, index);
      case 16: return body(element<16>{}, index);
      default: return body(element<32>{}, index);
    }
  };
  types.index == 4 ? with_index(uint32_t{}) : with_index(uint64_t{});
}

/// The range of elements, out of `count`, that a range of tiles processes.
struct range {
  uint64_t begin, end;
};
range share(uint64_t count, const hpeTiles& tiles) {
  const auto at = [&](uint64_t tile) { return uint64_t(static_cast<unsigned __int128>(count) * tile / tiles.grid[0]); };
  return {at(tiles.begin), at(tiles.end)};
}

void report(gather_status* status, uint64_t place) {
  uint64_t seen = __atomic_load_n(&status->first_out_of_range, __ATOMIC_RELAXED);
  while (place < seen && !__atomic_compare_exchange_n(&status->first_out_of_range, &seen, place, true, __ATOMIC_RELAXED,
                                                      __ATOMIC_RELAXED)) {
  }
}

/// Writes values in order. Many values are written past the caches, because a cache reads each line before the line is
/// written.
template <class Element>
class ordered_writer {
 public:
  ordered_writer(Element* to, uint64_t count) : to_(to), bypass_(count * sizeof(Element) >= bypass_bytes) {}

  void put(uint64_t place, const Element& value) const {
    if (!bypass_) {
      to_[place] = value;
    } else if constexpr (sizeof(Element) < 16) {
      using word = std::conditional_t<sizeof(Element) == 4, int, long long>;
      word bits;
      memcpy(&bits, &value, sizeof bits);
      if constexpr (sizeof(Element) == 4)
        _mm_stream_si32(reinterpret_cast<int*>(to_ + place), bits);
      else
        _mm_stream_si64(reinterpret_cast<long long*>(to_ + place), bits);
    } else {
      const auto* const from = reinterpret_cast<const __m128i*>(&value);
      for (size_t i = 0; i < sizeof(Element) / 16; ++i)
        _mm_stream_si128(reinterpret_cast<__m128i*>(to_ + place) + i, _mm_load_si128(from + i));
    }
  }
  void finish() const {
    if (bypass_) _mm_sfence();
  }

 private:
  static constexpr uint64_t bypass_bytes = 16 << 20;
  Element* const to_;
  const bool bypass_;
};

/// The number of accesses by which prefetches run ahead: more than a processor core can have in flight.
constexpr uint64_t ahead = 128;

/// Calls body(i, indices[i]) for each i of a range, and prefetches the element of the access `ahead` iterations later.
template <bool writes, class Element, class Index, class Body>
void visit(const Element* table, const Index* indices, range where, const Body& body) {
  const uint64_t fetching = where.end - where.begin > ahead ? where.end - ahead : where.begin;
  for (uint64_t i = where.begin; i < fetching; ++i) {
    __builtin_prefetch(table + indices[i + ahead], writes ? 1 : 0);  // a prefetch ignores an invalid address
    body(i, indices[i]);
  }
  for (uint64_t i = fetching; i < where.end; ++i) body(i, indices[i]);
}

template <class Element, class Index>
void access_stream(const gather_access_parameters& p, const gather_stream& s, const hpeTiles& tiles) {
  const uint64_t first = s.begin != nullptr ? *s.begin : 0, last = s.begin != nullptr ? *s.end : s.count;
  const range mine = share(last - first, tiles);
  const auto* const indices = static_cast<const Index*>(s.indices) + first;
  auto* const values = static_cast<Element*>(s.values) + first;
  auto* const table = static_cast<Element*>(p.table);
  const uint64_t from = p.from, size = p.to - p.from;
  const auto in_chunk = [&](uint64_t i, uint64_t x) {
    if (x - from < size) return true;
    if (x >= p.table_count && p.status != nullptr) report(p.status, p.first_place + first + i);
    return false;
  };
  if (p.types.way == gather_way::gather)
    // Stores through the caches, because stores that bypass the caches would occupy the buffers into which prefetched
    // lines arrive.
    visit<false>(table, indices, mine, [&](uint64_t i, uint64_t x) {
      if (in_chunk(i, x)) values[i] = table[x];
    });
  else if (p.winners == nullptr)
    visit<true>(table, indices, mine, [&](uint64_t i, uint64_t x) {
      if (in_chunk(i, x)) table[x] = values[i];
    });
  else
    visit<true>(table, indices, mine, [&](uint64_t i, uint64_t x) {
      if (in_chunk(i, x) && p.winners[x] == p.first_place + first + i + 1) table[x] = values[i];
    });
}

template <class Index>
void mark(const gather_mark_parameters& p, const hpeTiles& tiles) {
  const range mine = share(p.count, tiles);
  const auto* const indices = static_cast<const Index*>(p.indices);
  for (uint64_t i = mine.begin; i < mine.end; ++i) {
    const uint64_t x = indices[i], place = p.first_place + i + 1;
    if (x >= p.table_count) continue;
    uint64_t seen = __atomic_load_n(p.winners + x, __ATOMIC_RELAXED);
    while (place > seen &&
           !__atomic_compare_exchange_n(p.winners + x, &seen, place, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
  }
}

template <class Index>
void count_part(const gather_partition& p, uint32_t part) {
  uint64_t counts[gather_most_chunks + 1] = {};
  const auto* const indices = static_cast<const Index*>(p.indices);
  const uint64_t begin = p.part_begin(part), end = p.part_begin(part + 1);
  for (uint64_t i = begin; i < end; ++i) ++counts[p.chunks.of(indices[i])];
  for (uint32_t c = 0; c <= p.chunks.count; ++c) p.offsets[uint64_t{c} * p.parts + part] = counts[c];
  if (counts[p.chunks.count] == 0) return;
  uint64_t i = begin;
  while (indices[i] < p.chunks.table) ++i;
  report(p.status, p.first_place + i);
}

/// Collects the elements of each stream until they fill a cache line, and writes the whole line past the cache: a cache
/// would read the line before a part of it is written.
template <class T>
class line_writer {
 public:
  line_writer(T* to, const uint64_t* begins, uint32_t streams) : to_(to), begins_(begins), streams_(streams) {}

  void put(uint32_t stream, uint64_t place, const T& value) {
    T* const line = lines_[stream];
    const uint64_t slot = place % per_line;
    line[slot] = value;
    if (slot != per_line - 1) return;
    const uint64_t begin = place - slot;
    if (begin < begins_[stream]) return copy(stream, begins_[stream], place + 1);
    auto* const to = reinterpret_cast<__m128i*>(to_ + begin);
    const auto* const from = reinterpret_cast<const __m128i*>(line);
    for (int i = 0; i < 4; ++i) _mm_stream_si128(to + i, _mm_load_si128(from + i));
  }

  /// Writes the lines that are not full. ends: for each stream, the position after its last element.
  void finish(const uint64_t* ends) {
    for (uint32_t s = 0; s < streams_; ++s) {
      const uint64_t line = ends[s] / per_line * per_line;
      copy(s, line < begins_[s] ? begins_[s] : line, ends[s]);
    }
    _mm_sfence();
  }

 private:
  static constexpr uint64_t per_line = line_bytes / sizeof(T);

  void copy(uint32_t stream, uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) to_[i] = lines_[stream][i % per_line];
  }

  T* const to_;
  const uint64_t* const begins_;
  const uint32_t streams_;
  alignas(line_bytes) T lines_[gather_most_chunks + 1][per_line];
};

/// For each stream, where the segment of one part of the indices begins, and where the part's next element goes.
struct cursors {
  cursors(const gather_partition& p, uint32_t part) {
    for (uint32_t c = 0; c <= p.chunks.count; ++c) begin[c] = next[c] = p.offsets[uint64_t{c} * p.parts + part];
  }
  uint64_t begin[gather_most_chunks + 1], next[gather_most_chunks + 1];
};

template <class Element, class Index>
void move_to_streams(const gather_move_parameters& m, uint32_t part) {
  const gather_partition& p = m.partition;
  cursors at(p, part);
  const uint32_t streams = p.chunks.count + 1;
  const auto* const indices = static_cast<const Index*>(p.indices);
  const auto* const values = static_cast<const Element*>(m.values);
  const uint64_t end = p.part_begin(part + 1);
  line_writer<Index> to_indices(static_cast<Index*>(m.stream_indices), at.begin, streams);
  if (p.types.way == gather_way::gather) {
    for (uint64_t i = p.part_begin(part); i < end; ++i) {
      const uint32_t c = p.chunks.of(indices[i]);
      to_indices.put(c, at.next[c]++, indices[i]);
    }
  } else {
    line_writer<Element> to_values(static_cast<Element*>(m.stream_values), at.begin, streams);
    for (uint64_t i = p.part_begin(part); i < end; ++i) {
      const uint32_t c = p.chunks.of(indices[i]);
      const uint64_t place = at.next[c]++;
      to_indices.put(c, place, indices[i]);
      to_values.put(c, place, values[i]);
    }
    to_values.finish(at.next);
  }
  to_indices.finish(at.next);
}

template <class Element, class Index>
void move_back(const gather_move_parameters& m, uint32_t part) {
  const gather_partition& p = m.partition;
  cursors at(p, part);
  const auto* const indices = static_cast<const Index*>(p.indices);
  const auto* const from = static_cast<const Element*>(m.stream_values);
  const ordered_writer<Element> values(static_cast<Element*>(m.values), p.count);
  const uint64_t end = p.part_begin(part + 1);
  constexpr uint64_t two_lines = 2 * line_bytes / sizeof(Element);
  for (uint64_t i = p.part_begin(part); i < end; ++i) {
    const uint32_t c = p.chunks.of(indices[i]);
    const uint64_t place = at.next[c]++;
    __builtin_prefetch(from + place + two_lines);
    if (c < p.chunks.count) values.put(i, from[place]);
  }
  values.finish();
}

}  // namespace

HPE_HOST_KERNEL(gather_access, gather_access_parameters) {
  with_types(parameters->types, [&](auto e, auto i) {
    for (uint32_t s = 0; s < parameters->stream_count; ++s)
      access_stream<decltype(e), decltype(i)>(*parameters, parameters->streams[s], *tiles);
  });
}

HPE_HOST_KERNEL(gather_mark, gather_mark_parameters) {
  parameters->index_bytes == 4 ? mark<uint32_t>(*parameters, *tiles) : mark<uint64_t>(*parameters, *tiles);
}

HPE_HOST_KERNEL(gather_count, gather_partition) {
  const gather_partition& p = *parameters;
  for (uint64_t part = tiles->begin; part < tiles->end; ++part)
    p.types.index == 4 ? count_part<uint32_t>(p, uint32_t(part)) : count_part<uint64_t>(p, uint32_t(part));
}

HPE_HOST_KERNEL(gather_offsets, gather_partition) {
  if (tiles->begin != 0) return;
  const gather_partition& p = *parameters;
  uint64_t sum = 0;
  for (uint64_t i = 0; i < (uint64_t{p.chunks.count} + 1) * p.parts; ++i) {
    const uint64_t here = p.offsets[i];
    p.offsets[i] = sum;
    sum += here;
  }
}

HPE_HOST_KERNEL(gather_move, gather_move_parameters) {
  with_types(parameters->partition.types, [&](auto e, auto i) {
    for (uint64_t part = tiles->begin; part < tiles->end; ++part) {
      if (parameters->back != 0)
        move_back<decltype(e), decltype(i)>(*parameters, uint32_t(part));
      else
        move_to_streams<decltype(e), decltype(i)>(*parameters, uint32_t(part));
    }
  });
}

HPE_HOST_KERNEL(gather_random, gather_random_parameters) {
  const range mine = share(parameters->count, *tiles);
  const auto fill = [&](auto* indices) {
    for (uint64_t i = mine.begin; i < mine.end; ++i)
      indices[i] = static_cast<std::remove_reference_t<decltype(*indices)>>(parameters->at(i));
  };
  parameters->index_bytes == 4 ? fill(static_cast<uint32_t*>(parameters->indices))
                               : fill(static_cast<uint64_t*>(parameters->indices));
}

}  // namespace hpe::kernels
