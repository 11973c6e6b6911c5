#pragma once

/// The kernels of Fourier transforms: what they compute, and their parameters. Programs and kernel bodies include this
/// header: a program sets the members of a struct, a kernel body reads them. The header includes only <stdint.h>.
///
/// Notation: w_n = exp(2 pi i / n). Exponents of w have the factor `sign`: -1 in forward transforms, +1 in inverse
/// ones. Results are not scaled. Counts and distances are in complex elements; matrices are stored row by row without
/// gaps.

#include <stdint.h>

namespace hpe::kernels {

/// A complex number with the layout of std::complex<T>, cufftComplex and fftwf_complex.
template <class T>
struct complex_number {
  T re, im;
};

/// The side of the squares in which a matrix is transposed; each tile of a grid is one square. On a GPU, the launch may
/// have fewer blocks than tiles.
inline constexpr int64_t transpose_edge = 32;

[[nodiscard]] constexpr int64_t parts_of(int64_t whole, int64_t part) { return (whole + part - 1) / part; }

/// Computes target[r][c] = source[c][r] * w_root^(sign r c) for rows begin <= r < end of a target of rows * columns
/// elements. The rows of the target are target_row elements apart. `target` points to row `begin`. If root is 0,
/// elements are not multiplied. Otherwise, root must be rows * columns, so that r c < root.
///
/// When all devices transpose at the same time, each device reads from every other device. To spread these reads,
/// consecutive tiles read source rows in different parts of the source: there are `spread` parts, and the first tile
/// reads part `first`. The results do not depend on `spread` and `first`.
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

  /// The first row and column of a tile. A tile beyond the last column is empty.
  struct corner {
    int64_t r, c;
  };
  [[nodiscard]] constexpr corner at(int64_t tile) const {
    const int64_t part = (tile % spread + first) % spread, within = tile / spread;
    return {begin + within % tiles_down() * transpose_edge,
            (part * tiles_across() + within / tiles_down()) * transpose_edge};
  }
};

/// Computes data[r][c] *= w_root^(sign r c) for rows begin <= r < end. `data` points to row `begin`; r c must be below
/// root. For soft devices only.
template <class T>
struct fft_twiddle {
  complex_number<T>* data;
  int64_t columns;
  int64_t begin, end;
  int64_t root;
  int32_t sign;
};

/// The number of elements that a tile of each kernel below processes.
inline constexpr int64_t tile_elements = 4096;

/// The radix-2 step of two arrays, by decimation in frequency. Computes, for begin <= j < end, lower[j] = a[j] + b[j]
/// and upper[j] = (a[j] - b[j]) * w_root^(sign (offset + j)). Either a is lower and b is upper, or a and b do not
/// overlap lower and upper.
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

/// Computes target[i] = source[reversed(i mod parts)][i div parts] for begin <= i < end. The source has `parts` =
/// 2^bits rows of `length` elements, and reversed() reverses the order of `bits` bits. The kernel brings the results of
/// butterflies into natural order.
template <class T>
struct fft_interleave {
  const complex_number<T>* source;
  complex_number<T>* target;
  int64_t length;
  int64_t begin, end;
  int32_t bits;
};

/// Computes, for begin <= i < end, target[i] = exp(sign pi i j^2 / length) if j < length, else 0. Here, j is i if
/// period is 0, else the distance from i to the nearest multiple of period.
template <class T>
struct fft_chirp {
  complex_number<T>* target;
  int64_t length, period;
  int64_t begin, end;
  int32_t sign;
};

/// Computes, for begin <= i < end, target[i] = scale * left[i] * right[i] if i < count, else 0 without reading left and
/// right. If conjugate is 1, right[i] is conjugated.
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

/// How long FFTW searches for a fast plan; the names are FFTW's.
enum class fft_effort : int32_t { estimate, measure, patient };

/// Transforms of one or two dimensions on a soft device, by FFTW. The launch transforms `count` consecutive arrays,
/// `per_tile` of them in each tile. For one dimension, lengths[0] is 1. `target` is the same array as `source`, or does
/// not overlap it. The first launch with new lengths and options creates FFTW's plans.
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

/// Transposes a matrix and transforms each row of the result, on a soft device: fft_transpose and fft_local in one
/// kernel, so that rows stay in the cache in between. If `back` is 1, the transformed rows become columns again:
/// target[c][r] = element c of row r. `target` then points to the first element of the whole matrix, whose rows are
/// gather.target_row elements apart. The target may be the source if both have the same distance between rows, because
/// a tile writes only elements that no other tile reads. A tile computes line_block rows.
inline constexpr int64_t line_block = 16;

template <class T>
struct fft_lines {
  fft_transpose<T> gather;
  fft_effort effort;
  int32_t back;
};

}  // namespace hpe::kernels
