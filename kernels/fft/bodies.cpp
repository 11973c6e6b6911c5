// The bodies for soft devices, compiled once for each instruction set. HPE_VARIANT is the name of the instruction set
// and the suffix of the functions.
//
// Invariants: only the kernels have external linkage, and no header defines inline functions. Otherwise, the linker
// could use a function compiled for a newer instruction set on an older machine. Factors are computed in double
// precision and rounded once.

#include <utility>

#include "hpe/kernel.h"
#include "kernels/fft/roots.h"
#include "kernels/fft_parameters.h"

namespace {

using namespace hpe::kernels;

inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

template <class T>
using number = complex_number<T>;

template <class T>
inline number<T> times(number<T> a, number<T> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

// Returns w_n^(sign m); 0 <= m < n must hold.
inline number<double> root(const root_table& t, int64_t m, int32_t sign) {
  number<double> w = times(t.coarse[m >> t.shift], t.fine[m & t.mask]);
  if (sign < 0) w.im = -w.im;
  return w;
}

template <class T>
inline number<T> rounded(number<double> w) {
  return {static_cast<T>(w.re), static_cast<T>(w.im)};
}

// The length of a table of powers. A geometric sequence of roots is computed in sections of this length: each root is
// the section's first root times a power.
constexpr int64_t stretch = 64;

// Sets `list` to the first `count` of 1, w^step, w^(2 step), ...
template <class T>
void powers(const root_table& t, int64_t step, int64_t count, int32_t sign, number<T> (&list)[stretch]) {
  for (int64_t j = 0; j < count; ++j) list[j] = rounded<T>(root(t, j * step, sign));
}

// Computes x[j] *= first * list[j] for 0 <= j < count.
template <class T>
inline void scale_by(number<T>* x, number<T> first, const number<T>* list, int64_t count) {
#pragma GCC ivdep
  for (int64_t j = 0; j < count; ++j) x[j] = times(x[j], times(first, list[j]));
}

// A cache line, as words of 8 bytes. A complex element has one or two words.
typedef int64_t words __attribute__((vector_size(64), aligned(8), may_alias));
constexpr int64_t words_in_line = 8;

// A step of a transposition of words in two lines: exchanges bit `step` of each word's position with the bit that says
// which of the two lines contains the word.
template <int64_t step, int64_t... word>
inline void exchange(words& a, words& b, std::integer_sequence<int64_t, word...> /*all*/) {
  const words first = __builtin_shufflevector(a, b, ((word & step) != 0 ? words_in_line + word - step : word)...);
  b = __builtin_shufflevector(a, b, ((word & step) != 0 ? words_in_line + word : word + step)...);
  a = first;
}

template <int64_t element_words, int64_t step>
inline void exchange_all(words (&line)[words_in_line / element_words]) {
#pragma GCC unroll 8
  for (int64_t i = 0; i < words_in_line / element_words; ++i)
    if ((i & step) == 0)
      exchange<step * element_words>(line[i], line[i + step], std::make_integer_sequence<int64_t, words_in_line>());
}

// Transposes a block of whole cache lines: 64 bytes of each of eight (or four) source rows become 64 bytes of each of
// as many target rows.
template <class T, int64_t edge>
inline void transpose_block(const number<T>* from, int64_t from_row, number<T>* to, int64_t to_row) {
  constexpr int64_t element_words = words_in_line / edge;
  words line[edge];
#pragma GCC unroll 8
  for (int64_t c = 0; c < edge; ++c) line[c] = *reinterpret_cast<const words*>(from + c * from_row);
  exchange_all<element_words, 1>(line);
  exchange_all<element_words, 2>(line);
  if constexpr (edge == 8) exchange_all<element_words, 4>(line);
#pragma GCC unroll 8
  for (int64_t r = 0; r < edge; ++r) *reinterpret_cast<words*>(to + r * to_row) = line[r];
}

// Computes rows [r0, r1) and columns [c0, c1) of the target.
template <class T>
void transpose_box(const fft_transpose<T>& p, int64_t r0, int64_t r1, int64_t c0, int64_t c1) {
  constexpr int64_t edge = 64 / sizeof(number<T>);
  const auto from = [&p](int64_t r, int64_t c) { return p.source + c * p.rows + r; };
  const auto to = [&p](int64_t r, int64_t c) { return p.target + (r - p.begin) * p.target_row + c; };
  // Prefetches the next rows of the target while the current rows are written.
  for (int64_t r = r1; r < least(r1 + transpose_edge, p.end); ++r)
    for (int64_t k = c0; k < c1; k += edge) __builtin_prefetch(to(r, k), 1);
  int64_t c = c0;
  for (; c + edge <= c1; c += edge) {
    // Prefetches source rows, which are too far apart for the hardware prefetcher to recognise the pattern.
    if (c + 3 * edge <= p.columns)
      for (int64_t ahead = c + 2 * edge; ahead < c + 3 * edge; ++ahead)
        for (int64_t r = r0; r < r1; r += edge) __builtin_prefetch(from(r, ahead));
    int64_t r = r0;
    for (; r + edge <= r1; r += edge) transpose_block<T, edge>(from(r, c), p.rows, to(r, c), p.target_row);
    for (; r < r1; ++r)
      for (int64_t k = c; k < c + edge; ++k) *to(r, k) = *from(r, k);
  }
  for (; c < c1; ++c)
    for (int64_t r = r0; r < r1; ++r) *to(r, c) = *from(r, c);
  if (p.root == 0) return;
  const root_table roots = roots_of_unity(p.root);
  for (int64_t r = r0; r < r1; ++r)
    for (int64_t k = c0; k < c1; ++k) *to(r, k) = times(*to(r, k), rounded<T>(root(roots, r * k, p.sign)));
}

template <class T>
void run(const fft_transpose<T>& p, const hpeTiles& tiles) {
  for (uint64_t tile = tiles.begin; tile < tiles.end; ++tile) {
    const auto at = p.at(static_cast<int64_t>(tile));
    if (at.c < p.columns)
      transpose_box(p, at.r, least(at.r + transpose_edge, p.end), at.c, least(at.c + transpose_edge, p.columns));
  }
}

// A tile of this kernel's grid is a row.
template <class T>
void run(const fft_twiddle<T>& p, const hpeTiles& tiles) {
  const root_table roots = roots_of_unity(p.root);
  number<T> steps[stretch];
  for (uint64_t tile = tiles.begin; tile < tiles.end; ++tile) {
    const int64_t r = p.begin + static_cast<int64_t>(tile);
    powers(roots, r, least(stretch, p.columns), p.sign, steps);
    number<T>* row = p.data + static_cast<int64_t>(tile) * p.columns;
    for (int64_t c = 0; c < p.columns; c += stretch)
      scale_by(row + c, rounded<T>(root(roots, r * c, p.sign)), steps, least(stretch, p.columns - c));
  }
}

// Calls body(first, end) for the range of elements of each tile.
template <class Parameters, class Body>
inline void for_tiles(const Parameters& p, const hpeTiles& tiles, Body body) {
  for (uint64_t tile = tiles.begin; tile < tiles.end; ++tile) {
    const int64_t first = p.begin + static_cast<int64_t>(tile) * tile_elements;
    body(first, least(first + tile_elements, p.end));
  }
}

template <class T>
void run(const fft_butterfly<T>& p, const hpeTiles& tiles) {
  const root_table roots = roots_of_unity(p.root);
  number<T> steps[stretch];
  powers(roots, 1, least(stretch, p.root), p.sign, steps);
  for_tiles(p, tiles, [&](int64_t first, int64_t end) {
    for (int64_t j = first; j < end; j += stretch) {
      const int64_t count = least(stretch, end - j);
      const number<T>* first_half = p.a + j;
      const number<T>* second_half = p.b + j;
      number<T>* lower = p.lower + j;
      number<T>* upper = p.upper + j;
#pragma GCC ivdep
      for (int64_t k = 0; k < count; ++k) {
        const number<T> a = first_half[k], b = second_half[k];
        lower[k] = {a.re + b.re, a.im + b.im};
        upper[k] = {a.re - b.re, a.im - b.im};
      }
      scale_by(upper, rounded<T>(root(roots, p.offset + j, p.sign)), steps, count);
    }
  });
}

inline int64_t reversed(int64_t value, int32_t bits) {
  int64_t turned = 0;
  for (int32_t b = 0; b < bits; ++b) turned |= (value >> b & 1) << (bits - 1 - b);
  return turned;
}

template <class T>
void run(const fft_interleave<T>& p, const hpeTiles& tiles) {
  const int64_t parts = int64_t{1} << p.bits;
  for_tiles(p, tiles, [&](int64_t first, int64_t end) {
    for (int64_t part = 0; part < parts; ++part) {
      const number<T>* from = p.source + reversed(part, p.bits) * p.length;
      const int64_t skip = (part - first % parts + parts) % parts;
      for (int64_t i = first + skip; i < end; i += parts) p.target[i] = from[i >> p.bits];
    }
  });
}

template <class T, bool conjugate>
inline void multiply(const fft_multiply<T>& p, int64_t first, int64_t end) {
#pragma GCC ivdep
  for (int64_t i = first; i < end; ++i) {
    number<T> factor = p.right[i];
    if constexpr (conjugate) factor.im = -factor.im;
    const number<T> product = times(p.left[i], factor);
    p.target[i] = {p.scale * product.re, p.scale * product.im};
  }
}

template <class T>
void run(const fft_multiply<T>& p, const hpeTiles& tiles) {
  for_tiles(p, tiles, [&p](int64_t first, int64_t end) {
    const int64_t filled = least(end, p.count);
    if (p.conjugate != 0)
      multiply<T, true>(p, first, filled);
    else
      multiply<T, false>(p, first, filled);
    for (int64_t i = filled > first ? filled : first; i < end; ++i) p.target[i] = {0, 0};
  });
}

}  // namespace

#define HPE_JOIN_(a, b) a##_##b
#define HPE_JOIN(a, b) HPE_JOIN_(a, b)
#define HPE_DEFINE(name, Parameters) \
  HPE_HOST_KERNEL(name, Parameters) { run(*parameters, *tiles); }
#define HPE_KERNEL(name, ...) HPE_DEFINE(HPE_JOIN(name, HPE_VARIANT), __VA_ARGS__)
#include "kernels/fft/kernels.def"
