#pragma once

/// The kernels of Fourier transforms: their results and their parameters. Programs and kernel bodies include this
/// header: a program fills in the structs, a kernel body reads them. The header needs only <stdint.h>.
///
/// Notation: w_n = exp(2 pi i / n). sign is -1 in forward transforms and +1 in inverse ones, as an exponent of w.
/// Results are not scaled. Counts and distances are in complex elements; matrices lie in memory row by row without
/// gaps.

#include <stdint.h>

namespace hpe::kernels {

/// Has the layout of std::complex<T>, cufftComplex and fftwf_complex.
template <class T>
struct complex_number {
  T re, im;
};

/// Transposes are done in squares of this many elements, one for each tile. On a GPU the launch may have fewer blocks
/// than tiles.
inline constexpr int64_t transpose_edge = 32;

[[nodiscard]] constexpr int64_t parts_of(int64_t whole, int64_t part) { return (whole + part - 1) / part; }

/// target[r][c] = source[c][r] * w_root^(sign r c) for rows begin <= r < end of a target of rows * columns, which lie
/// target_row elements apart; target points to its row `begin`. root 0: no factor. Otherwise root = rows * columns, so
/// that r c < root.
///
/// When all devices transpose at once, each reads from every other. Neighbouring tiles therefore take their source rows
/// from different parts of the source: `spread` parts, starting with part `first`. Results depend neither on `spread`
/// nor on `first`.
template <class T>
struct fft_transpose {
  const complex_number<T>* source;
  complex_number<T>* target;
  int64_t rows, columns;
  int64_t begin, end;
  int64_t root;
  int32_t sign;
  int32_t spread, first;
  int64_t target_row;

  [[nodiscard]] constexpr int64_t tiles_across() const { return parts_of(parts_of(columns, transpose_edge), spread); }
  [[nodiscard]] constexpr int64_t tiles_down() const { return parts_of(end - begin, transpose_edge); }
  [[nodiscard]] constexpr int64_t tiles() const { return spread * tiles_across() * tiles_down(); }

  /// The first row and column of a tile. A tile that lies behind the last column is empty.
  struct corner {
    int64_t r, c;
  };
  [[nodiscard]] constexpr corner at(int64_t tile) const {
    const int64_t part = (tile % spread + first) % spread, within = tile / spread;
    return {begin + within % tiles_down() * transpose_edge,
            (part * tiles_across() + within / tiles_down()) * transpose_edge};
  }
};

/// data[r][c] *= w_root^(sign r c) for rows begin <= r < end; data points to row `begin`. r c < root. Soft devices
/// only.
template <class T>
struct fft_twiddle {
  complex_number<T>* data;
  int64_t columns;
  int64_t begin, end;
  int64_t root;
  int32_t sign;
};

/// Elements that one tile of the kernels below works on.
inline constexpr int64_t tile_elements = 4096;

/// The radix-2 step between two parts, decimation in frequency: for begin <= j < end
/// lower[j], upper[j] = a[j] + b[j], (a[j] - b[j]) * w_root^(sign (offset + j)). a is lower and b is upper, or neither
/// overlaps them.
template <class T>
struct fft_butterfly {
  const complex_number<T>* a;
  const complex_number<T>* b;
  complex_number<T>* lower;
  complex_number<T>* upper;
  int64_t begin, end;
  int64_t offset, root;
  int32_t sign;
};

/// target[i] = source[reversed(i mod parts)][i div parts] for begin <= i < end, where source has `parts` = 2^bits rows
/// of `length` and reversed() reverses the order of the bits. Brings the output of butterflies into natural order.
template <class T>
struct fft_interleave {
  const complex_number<T>* source;
  complex_number<T>* target;
  int64_t length;
  int64_t begin, end;
  int32_t bits;
};

/// target[i] = exp(sign pi i j^2 / length), where j = i, or with period > 0 the distance from i to the next multiple of
/// period; 0 where j is length or more. For begin <= i < end.
template <class T>
struct fft_chirp {
  complex_number<T>* target;
  int64_t length, period;
  int64_t begin, end;
  int32_t sign;
};

/// target[i] = scale * left[i] * right[i] for begin <= i < end; 0 where i >= count, without reading left and right
/// there. right is conjugated if conjugate is 1.
template <class T>
struct fft_multiply {
  complex_number<T>* target;
  const complex_number<T>* left;
  const complex_number<T>* right;
  int64_t begin, end;
  int64_t count;
  T scale;
  int32_t conjugate;
};

/// How long FFTW searches for a good plan; the names are FFTW's.
enum class fft_effort : int32_t { estimate, measure, patient };

/// Transforms of one or two dimensions on a soft device, by FFTW: `count` arrays one behind the other, `per_tile` of
/// them in each tile. lengths[0] is 1 for one dimension. target is source, or does not overlap it. The first launch
/// with new lengths and options makes FFTW's plans.
template <class T>
struct fft_local {
  const complex_number<T>* source;
  complex_number<T>* target;
  int64_t lengths[2];
  int64_t count, per_tile;
  int32_t sign;
  fft_effort effort;
  int32_t threads;
};

/// A transpose and then a transform of each row of the target, on a soft device: fft_transpose and fft_local in one
/// kernel, so that rows stay in the cache in between. With `back`, transformed rows become columns again: target[c][r]
/// = element c of row r. target then points to the first element of the whole matrix, whose rows lie gather.target_row
/// apart. It may be the source if the source has the same row distance: a tile writes only elements that no other tile
/// reads. A tile is line_block rows.
inline constexpr int64_t line_block = 16;

template <class T>
struct fft_lines {
  fft_transpose<T> gather;
  fft_effort effort;
  int32_t back;
};

}  // namespace hpe::kernels
