// The kernels of sparse matrices, graphs and hash tables for soft devices. Memory accesses limit the speed of these
// kernels; therefore, they are compiled for one instruction set only.

#include "hpe/kernel.h"
#include "kernels/sparse_parameters.h"

namespace hpe::kernels {

namespace {

/// The range of elements, out of `count`, that a range of tiles processes.
struct range {
  uint64_t begin, end;
};
range share(uint64_t count, const hpeTiles& tiles) {
  const auto at = [&](uint64_t tile) { return uint64_t(static_cast<unsigned __int128>(count) * tile / tiles.grid[0]); };
  return {at(tiles.begin), at(tiles.end)};
}

/// The number of accesses by which prefetches run ahead. A prefetch ignores an invalid address.
constexpr uint64_t ahead = 32;

template <class T>
void multiply(const sparse_multiply_parameters& p, const range& rows) {
  const T* const values = static_cast<const T*>(p.values);
  const T* const x = static_cast<const T*>(p.x);
  T* const y = static_cast<T*>(p.y);
  const uint64_t all = p.first[p.rows];
  for (uint64_t row = rows.begin; row < rows.end; ++row) {
    T sum = 0;
    const uint64_t end = p.first[row + 1];
    if (p.columns == nullptr)
      for (uint64_t k = p.first[row]; k < end; ++k) sum += values[k] * x[k];
    else
      for (uint64_t k = p.first[row]; k < end; ++k) {
        if (k + ahead < all) __builtin_prefetch(x + p.columns[k + ahead]);
        sum += values[k] * x[p.columns[k]];
      }
    y[row] = sum;
  }
}

/// Collects elements and appends many at a time, so that threads seldom change the shared counter.
class appender {
 public:
  appender(uint32_t* count) : count_(count) {}
  template <class Store>
  void add(uint32_t element, const Store& store) {
    kept_[size_++] = element;
    if (size_ == capacity) flush(store);
  }
  /// Appends the collected elements: calls store(position, element) for each of them.
  template <class Store>
  void flush(const Store& store) {
    const uint32_t begin = __atomic_fetch_add(count_, size_, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < size_; ++i) store(begin + i, kept_[i]);
    size_ = 0;
  }

 private:
  static constexpr uint32_t capacity = 256;
  uint32_t* const count_;
  uint32_t kept_[capacity];
  uint32_t size_ = 0;
};

}  // namespace

HPE_HOST_KERNEL(sparse_multiply, sparse_multiply_parameters) {
  const range mine = share(parameters->rows, *tiles);
  parameters->element == 4 ? multiply<float>(*parameters, mine) : multiply<double>(*parameters, mine);
}

HPE_HOST_KERNEL(graph_step, graph_step_parameters) {
  const graph_step_parameters& p = *parameters;
  const range mine = share(p.counts[p.depth], *tiles);
  appender reached(p.counts + p.depth + 1);
  const auto store = [&](uint32_t place, uint32_t vertex) { p.next[place] = vertex; };
  for (uint64_t i = mine.begin; i < mine.end; ++i) {
    const uint32_t vertex = p.frontier[i];
    for (uint32_t k = p.first[vertex]; k < p.first[vertex + 1]; ++k) {
      const uint32_t neighbour = p.neighbours[k];
      uint32_t expected = graph_unreached;
      if (__atomic_load_n(p.levels + neighbour, __ATOMIC_RELAXED) == graph_unreached &&
          __atomic_compare_exchange_n(p.levels + neighbour, &expected, p.depth + 1, false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED))
        reached.add(neighbour, store);
    }
  }
  reached.flush(store);
}

HPE_HOST_KERNEL(hash_slots, hash_slots_parameters) {
  const hash_slots_parameters& p = *parameters;
  const range mine = share(p.count, *tiles);
  for (uint64_t i = mine.begin; i < mine.end; ++i)
    p.indices[i] = hash_slot(p.entries != nullptr ? hash_key_of(p.entries[i]) : p.keys[i], p.level, p.slots);
}

HPE_HOST_KERNEL(hash_settle, hash_settle_parameters) {
  const hash_settle_parameters& p = *parameters;
  const range mine = share(p.count, *tiles);
  appender lost(p.rest_count);
  const auto store = [&](uint32_t place, uint32_t i) { p.rest[place] = p.entries[i]; };
  for (uint64_t i = mine.begin; i < mine.end; ++i)
    if (hash_key_of(p.found[i]) != hash_key_of(p.entries[i])) lost.add(uint32_t(i), store);
  lost.flush(store);
}

HPE_HOST_KERNEL(hash_match, hash_match_parameters) {
  const hash_match_parameters& p = *parameters;
  const range mine = share(p.count, *tiles);
  appender rest(p.rest_count);
  const auto place_of = [&](uint64_t i) { return p.places != nullptr ? p.places[i] : uint32_t(i); };
  const auto store = [&](uint32_t place, uint32_t i) {
    p.rest_keys[place] = p.keys[i];
    p.rest_places[place] = place_of(i);
  };
  for (uint64_t i = mine.begin; i < mine.end; ++i) {
    const uint64_t found = p.found[i];
    if (found == hash_empty)
      p.results[place_of(i)] = p.missing;
    else if (hash_key_of(found) == p.keys[i])
      p.results[place_of(i)] = hash_value_of(found);
    else
      rest.add(uint32_t(i), store);
  }
  rest.flush(store);
}

}  // namespace hpe::kernels
