#pragma once

/// The kernels of convolution, least squares, tomosynthesis, image filters and products of matrices: the parameters,
/// and how one element of each result is computed on soft devices and GPUs. Programs and kernel bodies include this
/// header; it needs only <stdint.h> and <math.h>.
///
/// A grid may have any size: its tiles divide the elements of the result among them.

#include <math.h>
#include <stdint.h>

#if defined(__CUDACC__)
#define HPE_IMAGING_BOTH __host__ __device__ inline
#else
#define HPE_IMAGING_BOTH inline
#endif

namespace hpe::kernels {

/// A convolution with 7 x 7 weights: target(y, x) is the sum of weights[i][j] source(y + 3 - i, x + 3 - j) over all i
/// and j. Row y of the target has the position of row y + above of the source. Pixels outside the source count as 0.
inline constexpr int32_t weight_side = 7, weight_reach = 3;
struct convolve {
  const float* source;
  float* target;
  int32_t width, source_rows, above, rows;
  float weights[weight_side * weight_side];

  [[nodiscard]] HPE_IMAGING_BOTH uint64_t count() const { return uint64_t(width) * uint64_t(rows); }
  HPE_IMAGING_BOTH void element(uint64_t number) const {
    const int32_t y = int32_t(number / uint32_t(width)) + above, x = int32_t(number % uint32_t(width));
    const bool inside =
        y >= weight_reach && y + weight_reach < source_rows && x >= weight_reach && x + weight_reach < width;
    target[number] = inside ? inner(y, x) : at_edge(y, x);
  }

 private:
  [[nodiscard]] HPE_IMAGING_BOTH float inner(int32_t y, int32_t x) const {
    float sum = 0;
    for (int32_t i = 0; i < weight_side; ++i) {
      const float* const line = source + int64_t(y + weight_reach - i) * width + x + weight_reach;
      for (int32_t j = 0; j < weight_side; ++j) sum += weights[i * weight_side + j] * line[-j];
    }
    return sum;
  }
  [[nodiscard]] HPE_IMAGING_BOTH float at_edge(int32_t y, int32_t x) const {
    float sum = 0;
    for (int32_t i = 0; i < weight_side; ++i) {
      const int32_t row = y + weight_reach - i;
      if (row < 0 || row >= source_rows) continue;
      const float* const line = source + int64_t(row) * width;
      for (int32_t j = 0; j < weight_side; ++j) {
        const int32_t column = x + weight_reach - j;
        if (column >= 0 && column < width) sum += weights[i * weight_side + j] * line[column];
      }
    }
    return sum;
  }
};

/// How a kernel loads values that all threads read. plain: an ordinary load. read_only: a load by the path for data
/// that no thread writes (ld.global.nc; on soft devices an ordinary load). uncached: a new load each time, which
/// bypasses the first-level cache.
enum class load_path : uint32_t { plain, read_only, uncached };
struct plain_load {
  HPE_IMAGING_BOTH float operator()(const float* from) const { return *from; }
};
struct uncached_load {
  HPE_IMAGING_BOTH float operator()(const float* from) const { return *static_cast<const volatile float*>(from); }
};
#if defined(__CUDA_ARCH__)
struct read_only_load {
  __device__ float operator()(const float* from) const { return __ldg(from); }
};
#else
using read_only_load = plain_load;
#endif

/// An image filter: target(y, x) is the sum of weights[i][j] source(y + i - reach, x + j - reach) over all i and j, for
/// each channel. A pixel outside the image counts as the nearest pixel of the image. The kernel computes `part` rows
/// from row `first` on; source and target are whole images.
struct filter_image {
  const float* source;
  float* target;
  const float* weights;  // 2 reach + 1 rows and as many columns
  int32_t rows, columns, channels, reach, first, part;
  load_path loads;

  [[nodiscard]] HPE_IMAGING_BOTH uint64_t count() const { return uint64_t(part) * line(); }
  HPE_IMAGING_BOTH void element(uint64_t number) const {
    const uint64_t place = uint64_t(first) * line() + number;
    const int32_t y = int32_t(place / line()), in_line = int32_t(place % line());
    switch (loads) {
      case load_path::plain: target[place] = sum(y, in_line, plain_load{}); break;
      case load_path::read_only: target[place] = sum(y, in_line, read_only_load{}); break;
      case load_path::uncached: target[place] = sum(y, in_line, uncached_load{}); break;
    }
  }

 private:
  /// Returns the number of values in a row.
  [[nodiscard]] HPE_IMAGING_BOTH uint32_t line() const { return uint32_t(columns) * uint32_t(channels); }
  [[nodiscard]] HPE_IMAGING_BOTH static int32_t within(int32_t place, int32_t end) {
    return place < 0 ? 0 : place < end ? place : end - 1;
  }
  template <class Load>
  [[nodiscard]] HPE_IMAGING_BOTH float sum(int32_t y, int32_t in_line, const Load& load) const {
    const int32_t x = in_line / channels, channel = in_line % channels;
    const float* weight = weights;
    float result = 0;
    for (int32_t i = y - reach; i <= y + reach; ++i) {
      const float* const row = source + uint64_t(within(i, rows)) * line() + channel;
      for (int32_t j = x - reach; j <= x + reach; ++j)
        result += load(weight++) * row[int64_t(within(j, columns)) * channels];
    }
    return result;
  }
};

/// Computes, for each path of `points` points in space, the matrix M that brings the path nearest to the reference
/// path: M minimises the sum of |p M - r|^2 over all points p of the path, where r is the point of the reference path
/// with the same number. M = (A' A)^-1 A' R, where each row of A and R is a point. M is 0 if all points of the path are
/// in one plane through the origin.
struct fit_paths {
  const float* paths;      // paths_count x points x 3
  const float* reference;  // points x 3
  float* fits;             // paths_count x 3 x 3
  uint64_t paths_count;
  uint32_t points;

  [[nodiscard]] HPE_IMAGING_BOTH uint64_t count() const { return paths_count; }
  HPE_IMAGING_BOTH void element(uint64_t number) const {
    float squares[9] = {}, products[9] = {};
    const float* const path = paths + number * points * 3;
    for (uint32_t k = 0; k < points; ++k)
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
          squares[3 * i + j] += path[3 * k + i] * path[3 * k + j];
          products[3 * i + j] += path[3 * k + i] * reference[3 * k + j];
        }
    float inverse[9];
    invert(squares, inverse);
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) {
        float sum = 0;
        for (int k = 0; k < 3; ++k) sum += inverse[3 * i + k] * products[3 * k + j];
        fits[9 * number + 3 * i + j] = sum;
      }
  }

  /// Computes the inverse of a matrix by its adjugate; sets it to 0 if the determinant is 0.
  HPE_IMAGING_BOTH static void invert(const float (&m)[9], float (&inverse)[9]) {
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) {
        const int a = (i + 1) % 3, b = (i + 2) % 3, c = (j + 1) % 3, d = (j + 2) % 3;
        inverse[3 * j + i] = m[3 * a + c] * m[3 * b + d] - m[3 * a + d] * m[3 * b + c];
      }
    const float determinant = m[0] * inverse[0] + m[1] * inverse[3] + m[2] * inverse[6];
    const float factor = determinant != 0 ? 1 / determinant : 0;
    for (float& v : inverse) v *= factor;
  }
};

/// The geometry of tomosynthesis with parallel rays: in view v, slice z appears shifted by (v - (views - 1) / 2) * step
/// * z columns.
struct tomography {
  int32_t views, slices, rows, columns;
  float step;

  [[nodiscard]] HPE_IMAGING_BOTH float shift(int32_t view, int32_t slice) const {
    return (float(view) - 0.5F * float(views - 1)) * step * float(slice);
  }
  /// Returns the value of a line at a fractional column, by linear interpolation. Beyond the ends of the line, returns
  /// the value at the nearest end.
  [[nodiscard]] HPE_IMAGING_BOTH float at(const float* line, float column) const {
    const float within = fminf(fmaxf(column, 0), float(columns - 1));
    const int32_t left = int32_t(within), right = left + 1 < columns ? left + 1 : left;
    const float share = within - float(left);
    return (1 - share) * line[left] + share * line[right];
  }
  /// Returns the mean of the slices' values along the ray that hits a pixel of a view.
  [[nodiscard]] HPE_IMAGING_BOTH float projection(const float* volume, int32_t view, int32_t y, int32_t x) const {
    float sum = 0;
    for (int32_t z = 0; z < slices; ++z)
      sum += at(volume + (int64_t(z) * rows + y) * columns, float(x) - shift(view, z));
    return sum / float(slices);
  }
};

/// Computes the ratios of measured values to projections of the volume, for `part` views from view `first` on.
struct compare_views {
  tomography how;
  const float* volume;    // slices x rows x columns
  const float* measured;  // part x rows x columns: the measured views from view `first` on
  float* ratios;          // views x rows x columns
  int32_t first, part;

  [[nodiscard]] HPE_IMAGING_BOTH uint64_t count() const {
    return uint64_t(part) * uint64_t(how.rows) * uint64_t(how.columns);
  }
  HPE_IMAGING_BOTH void element(uint64_t number) const {
    const uint64_t place = number + uint64_t(first) * uint64_t(how.rows) * uint64_t(how.columns);
    const int32_t x = int32_t(place % uint32_t(how.columns));
    const int32_t y = int32_t(place / uint32_t(how.columns) % uint32_t(how.rows));
    const int32_t view = int32_t(place / (uint64_t(how.rows) * uint64_t(how.columns)));
    constexpr float least = 1e-6F;
    ratios[place] = measured[number] / fmaxf(how.projection(volume, view, y, x), least);
  }
};

/// Multiplies each value of `part` slices from slice `first` on by the mean ratio, over all views, of the rays through
/// the value.
struct correct_slices {
  tomography how;
  const float* ratios;
  float* volume;
  int32_t first, part;

  [[nodiscard]] HPE_IMAGING_BOTH uint64_t count() const {
    return uint64_t(part) * uint64_t(how.rows) * uint64_t(how.columns);
  }
  HPE_IMAGING_BOTH void element(uint64_t number) const {
    const uint64_t place = number + uint64_t(first) * uint64_t(how.rows) * uint64_t(how.columns);
    const int32_t x = int32_t(place % uint32_t(how.columns));
    const int32_t y = int32_t(place / uint32_t(how.columns) % uint32_t(how.rows));
    const int32_t z = int32_t(place / (uint64_t(how.rows) * uint64_t(how.columns)));
    float sum = 0;
    for (int32_t v = 0; v < how.views; ++v)
      sum += how.at(ratios + (int64_t(v) * how.rows + y) * how.columns, float(x) + how.shift(v, z));
    volume[place] *= sum / float(how.views);
  }
};

/// A product of matrices that are stored row by row: c = a b, or c += a b if accumulate is not 0.
struct multiply_matrices {
  const float* a;  // rows x inner
  const float* b;  // inner x columns
  float* c;        // rows x columns
  int32_t rows, inner, columns, accumulate;
};
/// The side of the square of the product that a block of threads computes on GPUs. There, the grid of a launch
/// must have one tile for each square.
inline constexpr int32_t multiply_side = 64;

}  // namespace hpe::kernels
