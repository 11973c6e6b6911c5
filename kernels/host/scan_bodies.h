#pragma once

/// The bodies of scans for soft devices, as templates over the element type and the operator
/// (kernels/scan_operators.h). HPE_HOST_SCAN(suffix, T, Op) defines the kernels scan_reduce_suffix, scan_sums_suffix,
/// scan_chunks_suffix and scan_single_pass_suffix. A program can use the macro in its own module.
///
/// The operators of scan_operators.h are computed in vectors of HPE_SCAN_VECTOR_BYTES (16, 32 or 64) bytes, which the
/// including file may define; other operators are computed element by element. All code is in an anonymous namespace,
/// so that the linker never mixes code for different instruction sets.

#include <emmintrin.h>
#include <sched.h>
#include <string.h>

#include <type_traits>
#include <utility>

#include "hpe/kernel.h"
#include "kernels/scan.h"
#include "kernels/scan_operators.h"

#if !defined(HPE_SCAN_VECTOR_BYTES)
#define HPE_SCAN_VECTOR_BYTES 16
#endif

namespace {

using namespace hpe::kernels;

inline constexpr int scan_vector_bytes = HPE_SCAN_VECTOR_BYTES;

template <class T>
constexpr int lanes = scan_vector_bytes / int(sizeof(T));

// A vector of elements whose additions wrap around.
template <class T>
struct vector_type {
  typedef typename wrapping<T>::type type __attribute__((vector_size(scan_vector_bytes)));
};
template <>
struct vector_type<int32_t> {
  typedef int32_t type __attribute__((vector_size(scan_vector_bytes)));
};
template <>
struct vector_type<int64_t> {
  typedef int64_t type __attribute__((vector_size(scan_vector_bytes)));
};
template <class T>
using vec = typename vector_type<T>::type;
template <class T>
inline vec<T> combine(plus<T>, vec<T> a, vec<T> b) {
  typedef typename wrapping<T>::type number __attribute__((vector_size(scan_vector_bytes)));
  return vec<T>(number(a) + number(b));
}
template <class T>
inline vec<T> combine(minimum<T>, vec<T> a, vec<T> b) {
  return b < a ? b : a;
}
template <class T>
inline vec<T> combine(maximum<T>, vec<T> a, vec<T> b) {
  return a < b ? b : a;
}
template <class T, class Op>
inline constexpr bool in_vectors = false;
template <class T, class Op>
requires std::is_arithmetic_v<T>
inline constexpr bool in_vectors<T, Op> = requires(Op op, vec<T> v) { combine(op, v, v); };

template <class T>
inline vec<T> all_lanes(T value) {
  return value - vec<T>{};
}
template <class T>
inline vec<T> load(const T* from) {
  vec<T> v;
  memcpy(&v, from, sizeof v);
  return v;
}
template <class T>
inline void store(T* to, vec<T> v) {
  memcpy(to, &v, sizeof v);
}
// Stores a vector past the caches. `to` must be aligned to the size of a vector.
template <class T>
inline void stream(T* to, vec<T> v) {
  __m128i part[sizeof(v) / 16];
  memcpy(part, &v, sizeof v);
  for (unsigned i = 0; i < sizeof(v) / 16; ++i) _mm_stream_si128(reinterpret_cast<__m128i*>(to) + i, part[i]);
}

// Moves each lane of v up by `distance` lanes; the first `distance` lanes come from the same lanes of `fill`.
template <class T, int distance, int... i>
inline vec<T> move_up(vec<T> v, vec<T> fill, std::integer_sequence<int, i...>) {
  return __builtin_shufflevector(fill, v, (i < distance ? i : lanes<T> + i - distance)...);
}
template <class T, int distance>
inline vec<T> move_up(vec<T> v, vec<T> fill) {
  return move_up<T, distance>(v, fill, std::make_integer_sequence<int, lanes<T>>());
}

template <class T, int distance = 1, class Op>
inline vec<T> scan_lanes(vec<T> v, vec<T> fill, Op op) {
  if constexpr (distance < lanes<T>)
    return scan_lanes<T, 2 * distance>(combine(op, move_up<T, distance>(v, fill), v), fill, op);
  else
    return v;
}

template <class T, int... i>
inline vec<T> last_lane(vec<T> v, std::integer_sequence<int, i...>) {
  return __builtin_shufflevector(v, v, ((void)i, lanes<T> - 1)...);
}
template <class T>
inline vec<T> last_lane(vec<T> v) {
  return last_lane<T>(v, std::make_integer_sequence<int, lanes<T>>());
}

// Combines all elements: in vectors for the operators of scan_operators.h, otherwise in order.
template <class T, class Op>
inline T reduce(const T* data, uint64_t count) {
  constexpr Op op{};
  T total = op.identity();
  uint64_t i = 0;
  if constexpr (in_vectors<T, Op>) {
    constexpr int width = lanes<T>;
    vec<T> sum[4];
    for (auto& s : sum) s = all_lanes(op.identity());
    for (; i + 4 * width <= count; i += 4 * width)
      for (int k = 0; k < 4; ++k) sum[k] = combine(op, sum[k], load(data + i + k * width));
    const vec<T> all = combine(op, combine(op, sum[0], sum[1]), combine(op, sum[2], sum[3]));
    for (int k = 0; k < width; ++k) total = op(total, all[k]);
  }
  for (; i < count; ++i) total = op(total, data[i]);
  return total;
}

// Whether a scan is inclusive, and whether it writes results past the caches.
struct manner {
  bool inclusive, past_caches;
};

// Scans element by element. Returns the combination of `before` and all elements.
template <class T, class Op>
inline T scan_slowly(const T* input, T* output, uint64_t count, T before, bool inclusive) {
  constexpr Op op{};
  for (uint64_t i = 0; i < count; ++i) {
    const T with = op(before, input[i]);
    output[i] = inclusive ? with : before;
    before = with;
  }
  return before;
}

template <class T, class Op, bool inclusive, bool past_caches>
inline T scan_vectors(const T* input, T* output, uint64_t count, T before) {
  constexpr Op op{};
  constexpr int width = lanes<T>;
  const vec<T> fill = all_lanes(op.identity());
  vec<T> carry = all_lanes(before);
  for (uint64_t i = 0; i + width <= count; i += width) {
    const vec<T> scanned = scan_lanes<T>(load(input + i), fill, op);
    const vec<T> result = combine(op, carry, inclusive ? scanned : move_up<T, 1>(scanned, fill));
    carry = combine(op, carry, last_lane<T>(scanned));
    if constexpr (past_caches)
      stream(output + i, result);
    else
      store(output + i, result);
  }
  return carry[0];
}

// Scans `count` elements, starting from the value `before`. Returns the combination of `before` and all elements.
template <class T, class Op>
inline T scan_run(const T* input, T* output, uint64_t count, T before, manner how) {
  uint64_t done = 0;
  if constexpr (in_vectors<T, Op>) {
    constexpr uint64_t width = lanes<T>;
    const uint64_t crooked = uintptr_t(output) % scan_vector_bytes / sizeof(T);
    done = how.past_caches && crooked != 0 ? width - crooked : 0;
    if (done > count) done = count;
    before = scan_slowly<T, Op>(input, output, done, before, how.inclusive);
    const uint64_t whole = (count - done) / width * width;
    const T* const from = input + done;
    T* const to = output + done;
    if (how.past_caches)
      before = how.inclusive ? scan_vectors<T, Op, true, true>(from, to, whole, before)
                             : scan_vectors<T, Op, false, true>(from, to, whole, before);
    else
      before = how.inclusive ? scan_vectors<T, Op, true, false>(from, to, whole, before)
                             : scan_vectors<T, Op, false, false>(from, to, whole, before);
    done += whole;
  }
  return scan_slowly<T, Op>(input + done, output + done, count - done, before, how.inclusive);
}

// Calls body(problem, number of the chunk, first element, end) for each chunk of the given tiles.
template <class Body>
inline void for_chunks(const scan_share& share, const hpeTiles& tiles, Body body) {
  const uint64_t chunks = share.chunks(), all = chunks * share.problems, grid = tiles.grid[0];
  const auto bound = [&](uint64_t tile) { return uint64_t(__uint128_t(all) * tile / grid); };
  for (uint64_t n = bound(tiles.begin); n < bound(tiles.end); ++n) {
    const uint64_t problem = chunks == 1 ? n : n / chunks, chunk = chunks == 1 ? 0 : n % chunks;
    const uint64_t begin = share.from + chunk * share.chunk;
    const uint64_t end = share.to - begin < share.chunk ? share.to : begin + share.chunk;
    body(problem, chunk, begin, end);
  }
}

template <class T, class Op>
inline void scan_reduce(const scan_three_stages<T>& p, const hpeTiles& tiles) {
  for_chunks(p.share, tiles, [&](uint64_t problem, uint64_t chunk, uint64_t begin, uint64_t end) {
    p.sums[problem * p.sums_per_problem + p.first_sum + chunk] =
        reduce<T, Op>(p.input + problem * p.share.length + begin, end - begin);
  });
}

template <class T, class Op>
inline void scan_sums(const scan_three_stages<T>& p, const hpeTiles& tiles) {
  const uint64_t grid = tiles.grid[0];
  for (uint64_t g = p.share.problems * tiles.begin / grid; g < p.share.problems * tiles.end / grid; ++g) {
    T* const row = p.sums + g * p.sums_per_problem;
    scan_run<T, Op>(row, row, p.sums_per_problem, Op{}.identity(), {false, false});
  }
}

template <class T, class Op>
inline void scan_chunks(const scan_three_stages<T>& p, const hpeTiles& tiles) {
  const manner how{p.inclusive != 0, p.stream != 0};
  for_chunks(p.share, tiles, [&](uint64_t problem, uint64_t chunk, uint64_t begin, uint64_t end) {
    const T before = p.sums == nullptr ? Op{}.identity() : p.sums[problem * p.sums_per_problem + p.first_sum + chunk];
    const uint64_t at = problem * p.share.length + begin;
    scan_run<T, Op>(p.input + at, p.output + at, end - begin, before, how);
  });
  _mm_sfence();
}

// The total of a tile, and the mark of the launch that computed it. A thread writes the mark after the total.
template <class T>
struct total_word {
  T value;
  alignas(T) uint32_t mark;
};

// Finds the prefixes of tiles for one thread, which must request tiles in ascending order. Keeps the prefix of the last
// tile, and adds the totals of the tiles after it.
template <class T, class Op>
class prefixes {
 public:
  prefixes(const total_word<T>* totals, uint32_t launch) : totals_(totals), launch_(launch) {}

  T before(const scan_tile& tile) {
    if (tile.first != first_) {
      first_ = tile.first;
      known_ = 0;
      before_ = Op{}.identity();
    }
    for (; known_ < tile.index; ++known_) {
      const total_word<T>& word = totals_[first_ + known_];
      for (unsigned looks = 1; __atomic_load_n(&word.mark, __ATOMIC_ACQUIRE) != launch_; ++looks) {
        _mm_pause();
        if (looks % 256 == 0) sched_yield();  // the thread that processes the awaited tile may need this core
      }
      before_ = Op{}(before_, word.value);
    }
    return before_;
  }

 private:
  const total_word<T>* totals_;
  uint32_t launch_;
  uint64_t first_ = ~uint64_t(0);
  uint64_t known_ = 0;  ///< the number of tiles of the problem whose totals before_ combines
  T before_ = Op{}.identity();
};

// Each iteration of the outer loop takes tickets for tiles until no tile is left; see scan_single_pass in
// kernels/scan.h. A thread reads a tile from memory when it reduces the tile, and from the cache when it scans the
// tile.
template <class T, class Op>
inline void scan_in_one_pass(const scan_single_pass<T>& p, const hpeTiles& tiles) {
  const manner how{p.inclusive != 0, p.stream != 0};
  for (uint64_t call = tiles.begin; call < tiles.end; ++call) {
    prefixes<T, Op> known(static_cast<const total_word<T>*>(p.totals[p.deal.device]), p.launch);
    for (;;) {
      const uint64_t mine = __atomic_fetch_add(&p.tickets->next, 1, __ATOMIC_RELAXED);
      const dealt_tile dealt = tile_for(p.tiling, p.deal, mine);
      if (dealt.last) break;
      if (dealt.none) continue;
      const scan_tile tile = tile_of(p.tiling, dealt.number);
      const T* const from = p.input + tile.begin;
      T* const to = p.output + tile.begin;
      if (p.tiling.several_problems()) {
        for (uint64_t done = 0; done < tile.count; done += p.tiling.length)
          scan_run<T, Op>(from + done, to + done, p.tiling.length, Op{}.identity(), how);
        continue;
      }
      if (p.tiling.tiles_per_problem > 1) {
        const T total = reduce<T, Op>(from, tile.count);
        for (uint32_t d = 0; d < p.deal.devices; ++d) {
          total_word<T>& word = static_cast<total_word<T>*>(p.totals[d])[dealt.number];
          word.value = total;
          __atomic_store_n(&word.mark, p.launch, __ATOMIC_RELEASE);
        }
      }
      scan_run<T, Op>(from, to, tile.count, known.before(tile), how);
    }
    _mm_sfence();
    if (__atomic_add_fetch(&p.tickets->left, 1, __ATOMIC_ACQ_REL) == tiles.grid[0]) {
      __atomic_store_n(&p.tickets->next, 0, __ATOMIC_RELAXED);
      __atomic_store_n(&p.tickets->left, 0, __ATOMIC_RELAXED);
    }
  }
}

}  // namespace

#define HPE_HOST_SCAN_KERNEL(name, Parameters, call) \
  HPE_HOST_KERNEL(name, Parameters) { call(*parameters, *tiles); }
#define HPE_HOST_SCAN(suffix, T, Op)                                                     \
  HPE_HOST_SCAN_KERNEL(scan_reduce_##suffix, scan_three_stages<T>, (scan_reduce<T, Op>)) \
  HPE_HOST_SCAN_KERNEL(scan_sums_##suffix, scan_three_stages<T>, (scan_sums<T, Op>))     \
  HPE_HOST_SCAN_KERNEL(scan_chunks_##suffix, scan_three_stages<T>, (scan_chunks<T, Op>)) \
  HPE_HOST_SCAN_KERNEL(scan_single_pass_##suffix, scan_single_pass<T>, (scan_in_one_pass<T, Op>))
