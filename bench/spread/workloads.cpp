#include "bench/spread/workloads.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <numeric>

#include "bench/spread/sparse_matrices.h"

namespace hpe::bench {

namespace {

using content = memory::content;

memory random_floats(std::uint64_t words) { return {words, content::random_floats, {}}; }
memory result(std::uint64_t words) { return {words, content::result, {}}; }

argument number(std::uint64_t value) { return {-1, value}; }
argument number(float value) { return {-1, std::bit_cast<std::uint32_t>(value)}; }
argument array(int n) { return {n, 0}; }

float& at(std::vector<std::uint32_t>& words, std::uint64_t n) { return reinterpret_cast<float&>(words[n]); }

std::uint32_t blocks(std::uint64_t count, std::uint32_t each) {
  return static_cast<std::uint32_t>((count + each - 1) / each);
}

/// Returns the largest power of two that is at most `most` * `factor`; at least 4096.
std::uint64_t power(double most, double factor) {
  return std::bit_floor(static_cast<std::uint64_t>(std::max(most * factor, 4096.0)));
}

/// Returns the side of a square or cube whose number of elements is proportional to the factor. of: the side for factor
/// 1. The result is a multiple of 64 and at least 64.
std::uint32_t side(double of, double factor, double dimensions) {
  return std::max(64U, static_cast<std::uint32_t>(of * std::pow(factor, 1 / dimensions)) / 64 * 64);
}

single_gpu_program vecadd(double factor) {
  const std::uint64_t n = power(0x1p28, factor);
  return {"vecadd",
          fmt::format("2^{}", std::bit_width(n) - 1),
          {result(n), random_floats(n), random_floats(n)},
          {{"vecadd", {blocks(n, 256), 1, 1}, {256, 1, 1}, {array(0), array(1), array(2), number(n)}}},
          {0},
          true,
          true,
          1.9,
          [n](contents& m) {
            for (std::uint64_t i = 0; i < n; ++i) at(m[0], i) = at(m[1], i) + at(m[2], i);
          }};
}

single_gpu_program saxpy(double factor) {
  const std::uint64_t n = power(0x1p28, factor);
  return {"saxpy",
          fmt::format("2^{}", std::bit_width(n) - 1),
          {random_floats(n), random_floats(n)},
          {{"saxpy", {blocks(n, 256), 1, 1}, {256, 1, 1}, {array(0), array(1), number(2.5F), number(n)}}},
          {0},
          true,
          true,
          1.9,
          [n](contents& m) {
            for (std::uint64_t i = 0; i < n; ++i) at(m[0], i) = std::fma(2.5F, at(m[1], i), at(m[0], i));
          }};
}

single_gpu_program reduction(double factor) {
  const std::uint64_t n = power(0x1p28, factor);
  const std::uint32_t each = n > (1U << 20U) ? 8192 : 512, parts = blocks(n, each);
  return {"reduction",
          fmt::format("2^{}", std::bit_width(n) - 1),
          {result(parts), random_floats(n), result(1)},
          {{"reduction", {parts, 1, 1}, {256, 1, 1}, {array(0), array(1), number(n), number(std::uint64_t{each})}},
           {"reduction",
            {1, 1, 1},
            {256, 1, 1},
            {array(2), array(0), number(std::uint64_t{parts}), number(std::uint64_t{parts})}}},
          {0, 2},
          true,
          true,
          1.8,
          [n, each](contents& m) {
            double all = 0;
            for (std::uint64_t b = 0; b * each < n; ++b) {
              double sum = 0;
              for (std::uint64_t i = b * each; i < std::min(n, (b + 1) * each); ++i) sum += at(m[1], i);
              at(m[0], b) = static_cast<float>(sum);
              all += sum;
            }
            at(m[2], 0) = static_cast<float>(all);
          }};
}

single_gpu_program convolution2D(double factor) {
  const std::uint32_t w = side(16384, factor, 2);
  const std::uint64_t n = std::uint64_t{w} * w;
  return {"convolution2D",
          fmt::format("{}^2, 9 x 9", w),
          {result(n), random_floats(n), random_floats(81)},
          {{"convolution2D",
            {w / 32, w / 8, 1},
            {32, 8, 1},
            {array(0), array(1), array(2), number(std::uint64_t{w}), number(std::uint64_t{w})}}},
          {0},
          true,
          true,
          1.9,
          [w](contents& m) {
            for (std::uint64_t y = 4; y + 4 < w; ++y)
              for (std::uint64_t x = 4; x + 4 < w; ++x) {
                float sum = 0;
                for (std::uint64_t j = 0; j < 9; ++j)
                  for (std::uint64_t i = 0; i < 9; ++i)
                    sum = std::fma(at(m[2], j * 9 + i), at(m[1], (y + j - 4) * w + x + i - 4), sum);
                at(m[0], y * w + x) = sum;
              }
          }};
}

single_gpu_program stencil2D(double factor) {
  const std::uint32_t w = side(16384, factor, 2);
  const std::uint64_t n = std::uint64_t{w} * w;
  return {"stencil2D",
          fmt::format("{}^2", w),
          {result(n), random_floats(n)},
          {{"stencil2D",
            {w / 32, w / 8, 1},
            {32, 8, 1},
            {array(0), array(1), number(std::uint64_t{w}), number(std::uint64_t{w})}}},
          {0},
          true,
          true,
          1.9,
          [w](contents& m) {
            for (std::uint64_t y = 1; y + 1 < w; ++y)
              for (std::uint64_t x = 1; x + 1 < w; ++x) {
                const std::uint64_t i = y * w + x;
                at(m[0], i) =
                    0.2F * (at(m[1], i) + at(m[1], i - 1) + at(m[1], i + 1) + at(m[1], i - w) + at(m[1], i + w));
              }
          }};
}

single_gpu_program stencil3D(double factor) {
  const std::uint32_t w = side(1024, factor, 3), d = w / 2;
  const std::uint64_t plane = std::uint64_t{w} * w, n = plane * d;
  return {"stencil3D",
          fmt::format("{0} x {0} x {1}", w, d),
          {result(n), random_floats(n)},
          {{"stencil3D",
            {w / 32, w / 8, d},
            {32, 8, 1},
            {array(0), array(1), number(std::uint64_t{w}), number(std::uint64_t{w}), number(std::uint64_t{d})}}},
          {0},
          true,
          true,
          1.9,
          [w, d, plane](contents& m) {
            auto& in = m[1];
            for (std::uint64_t z = 1; z + 1 < d; ++z)
              for (std::uint64_t y = 1; y + 1 < w; ++y)
                for (std::uint64_t x = 1; x + 1 < w; ++x) {
                  const std::uint64_t i = z * plane + y * w + x;
                  at(m[0], i) = 0.4F * at(in, i) + 0.1F * (at(in, i - 1) + at(in, i + 1) + at(in, i - w) +
                                                           at(in, i + w) + at(in, i - plane) + at(in, i + plane));
                }
          }};
}

single_gpu_program sgemv(double factor) {
  const std::uint32_t w = side(8192, factor, 2);
  return {"sgemv",
          fmt::format("{}^2", w),
          {result(w), random_floats(std::uint64_t{w} * w), random_floats(w)},
          {{"sgemv",
            {w / 8, 1, 1},
            {32, 8, 1},
            {array(0), array(1), array(2), number(std::uint64_t{w}), number(std::uint64_t{w})}}},
          {0},
          true,
          true,
          1.9,
          [w](contents& m) {
            for (std::uint64_t r = 0; r < w; ++r) {
              double sum = 0;
              for (std::uint64_t k = 0; k < w; ++k) sum += static_cast<double>(at(m[1], r * w + k)) * at(m[2], k);
              at(m[0], r) = static_cast<float>(sum);
            }
          }};
}

single_gpu_program sgemm(double factor) {
  const std::uint32_t w = side(4096, factor, 3);
  const std::uint64_t n = std::uint64_t{w} * w;
  return {"sgemm",
          fmt::format("{}^2", w),
          {result(n), random_floats(n), random_floats(n)},
          {{"sgemm", {w / 64, w / 64, 1}, {16, 16, 1}, {array(0), array(1), array(2), number(std::uint64_t{w})}}},
          {0},
          true,
          true,
          1.9,
          [w](contents& m) {
            for (std::uint64_t y = 0; y < w; ++y)
              for (std::uint64_t x = 0; x < w; ++x) {
                float sum = 0;
                for (std::uint64_t k = 0; k < w; ++k) sum = std::fma(at(m[1], y * w + k), at(m[2], k * w + x), sum);
                at(m[0], y * w + x) = sum;
              }
          }};
}

single_gpu_program transpose(double factor) {
  const std::uint32_t w = side(16384, factor, 2);
  const std::uint64_t n = std::uint64_t{w} * w;
  return {"transpose",
          fmt::format("{}^2", w),
          {result(n), random_floats(n)},
          {{"transpose", {w / 32, w / 32, 1}, {32, 8, 1}, {array(0), array(1), number(std::uint64_t{w})}}},
          {0},
          true,
          true,
          0.95,
          [w](contents& m) {
            for (std::uint64_t y = 0; y < w; ++y)
              for (std::uint64_t x = 0; x < w; ++x) m[0][x * w + y] = m[1][y * w + x];
          }};
}

single_gpu_program fft1D(double factor) {
  const std::uint64_t n = power(0x1p28, factor / 2);  // complex numbers, each of two words
  single_gpu_program p{"fft1D",
                       fmt::format("2^{} complex", std::bit_width(n) - 1),
                       {random_floats(2 * n), result(2 * n)},
                       {},
                       {},
                       true,
                       true,
                       0,
                       {}};
  int from = 0;
  for (std::uint64_t span = 1; span < n; span *= 2, from = 1 - from)
    p.steps.push_back(
        {"fft1D", {blocks(n / 2, 256), 1, 1}, {256, 1, 1}, {array(1 - from), array(from), number(n), number(span)}});
  p.results = {from};
  p.on_cpu = [n](contents& m) {
    int in = 0;
    for (std::uint64_t span = 1; span < n; span *= 2, in = 1 - in) {
      auto* const x = reinterpret_cast<std::complex<float>*>(m[static_cast<std::size_t>(in)].data());
      auto* const y = reinterpret_cast<std::complex<float>*>(m[static_cast<std::size_t>(1 - in)].data());
      for (std::uint64_t i = 0; i < n / 2; ++i) {
        const std::uint64_t k = i & (span - 1), to = 2 * i - k;
        const double angle = -std::acos(-1.0) * static_cast<double>(k) / static_cast<double>(span);
        const auto t = std::complex<float>(std::complex<double>(x[i + n / 2]) * std::polar(1.0, angle));
        y[to] = x[i] + t;
        y[to + span] = x[i] - t;
      }
    }
  };
  return p;
}

single_gpu_program sort(double factor) {
  const std::uint64_t n = power(0x1p28, factor);
  single_gpu_program p{"sort",
                       fmt::format("2^{} pairs", std::bit_width(n) - 1),
                       {random_floats(n), random_floats(n), result(n), result(n)},
                       {},
                       {},
                       true,
                       false,
                       0,
                       {}};
  p.steps.push_back({"sort_blocks", {blocks(n, 1024), 1, 1}, {512, 1, 1}, {array(0), array(1)}});
  int from = 0;
  for (std::uint64_t run = 1024; run < n; run *= 2, from = 2 - from)
    p.steps.push_back({"merge_runs",
                       {blocks(n, 256), 1, 1},
                       {256, 1, 1},
                       {array(2 - from), array(3 - from), array(from), array(from + 1), number(n), number(run)}});
  p.results = {from, from + 1};
  p.on_cpu = [n, from](contents& m) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
    for (std::uint64_t i = 0; i < n; ++i) pairs.emplace_back(m[0][i], m[1][i]);
    std::sort(pairs.begin(), pairs.end());
    for (std::uint64_t i = 0; i < n; ++i) {
      m[static_cast<std::size_t>(from)][i] = pairs[i].first;
      m[static_cast<std::size_t>(from) + 1][i] = pairs[i].second;
    }
  };
  return p;
}

}  // namespace

std::vector<named_program> single_gpu_programs(double factor) {
  std::vector<named_program> all;
  const std::pair<const char*, single_gpu_program (*)(double)> dense[] = {{"vecadd", vecadd},
                                                                          {"saxpy", saxpy},
                                                                          {"reduction", reduction},
                                                                          {"convolution2D", convolution2D},
                                                                          {"stencil2D", stencil2D},
                                                                          {"stencil3D", stencil3D},
                                                                          {"sgemv", sgemv},
                                                                          {"sgemm", sgemm},
                                                                          {"transpose", transpose},
                                                                          {"fft1D", fft1D},
                                                                          {"sort", sort}};
  for (const auto& [name, make] : dense) all.push_back({name, [make, factor] { return make(factor); }});
  for (named_program& p : sparse_programs(factor)) all.push_back(std::move(p));
  return all;
}

}  // namespace hpe::bench
