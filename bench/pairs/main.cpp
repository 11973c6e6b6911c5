// CUDA programs on a soft device, compared with the same programs in OpenMP on the same number of cores.
//
// The two versions of a program run alternately. OpenMP's threads spin for a while after each parallel region; the CUDA
// version starts after a pause in which they fall asleep.

#include <fmt/core.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "bench/common/measure.h"
#include "bench/pairs/pairs.h"

namespace hpe::bench::pairs {

const std::vector<pair>& all() {
  static const std::vector<pair> pairs = {
      {"vector triad", cuda::triad, openmp::triad, 1 << 20, 1000, 1e-6},
      {"2D stencil", cuda::stencil_2d, openmp::stencil_2d, 1024, 70, 1e-6},
      {"3D stencil", cuda::stencil_3d, openmp::stencil_3d, 128, 20, 1e-6},
      {"Jacobi with reduction", cuda::jacobi, openmp::jacobi, 512, 40, 1e-4},
      {"linear system, in a graph", cuda::linear_system, openmp::linear_system, 512, 96, 1e-9},
      {"reduction", cuda::reduction, openmp::reduction, 1 << 22, 5000, 1e-3},
      {"prefix sums", cuda::scan, openmp::scan, 1 << 20, 1500, 0},
      {"Fourier transform", cuda::fft, openmp::fft, 256, 2, 1e-5},
      {"n-body", cuda::n_body, openmp::n_body, 2048, 200, 1e-4},
      {"Monte Carlo", cuda::monte_carlo, openmp::monte_carlo, 1 << 13, 100, 1e-4},
      {"bitonic sort", cuda::bitonic_sort, openmp::bitonic_sort, 1 << 17, 2048, 0},
      {"radix sort", cuda::radix_sort, openmp::radix_sort, 1 << 19, 3000, 0},
      {"sparse matrix product", cuda::sparse_product, openmp::sparse_product, 1 << 16, 300, 1e-12},
      {"matrix product", cuda::product, openmp::product, 384, 40, 1e-5},
      {"tiled matrix product", cuda::tiled_product, openmp::tiled_product, 384, 48, 1e-5},
      {"convolution", cuda::convolution, openmp::convolution, 512, 50, 1e-5},
      {"median filter", cuda::median_filter, openmp::median_filter, 1024, 50, 0},
      {"Mandelbrot", cuda::mandelbrot, openmp::mandelbrot, 256, 24, 1e-2},
      {"complex roots", cuda::complex_roots, openmp::complex_roots, 192, 16, 1e-2},
      {"histogram", cuda::histogram, openmp::histogram, 1 << 22, 5000, 0},
      {"transpose", cuda::transpose, openmp::transpose, 1024, 64, 0},
      {"Black-Scholes", cuda::black_scholes, openmp::black_scholes, 1 << 18, 500, 1e-4},
      {"k-means", cuda::k_means, openmp::k_means, 1 << 18, 500, 1e-2},
  };
  return pairs;
}

namespace {

constexpr auto until_asleep = std::chrono::milliseconds(20);

// Returns the root mean square of a - b, relative to that of b; infinity if a and b have different lengths.
double difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return INFINITY;
  double apart = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    apart += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  return apart == 0 ? 0 : std::sqrt(apart / size);
}

struct options {
  bool small = false;
  unsigned threads = std::max(1U, std::thread::hardware_concurrency());
  std::string only;
};

void must_agree(const pair& p, const version& cuda, const version& openmp) {
  const double apart = difference(cuda.result(), openmp.result());
  if (apart <= p.tolerance) return;
  fmt::print(
      stderr,
      "{}: the results of CUDA and OpenMP have a relative difference (L2 norm) of {:.3g}; at most {:.3g} is allowed\n",
      p.name, apart, p.tolerance);
  std::exit(EXIT_FAILURE);
}

std::vector<result> measure(const arguments& given, const options& wanted) {
  std::vector<result> lines;
  std::vector<double> speeds;
  for (const pair& p : all()) {
    if (!wanted.only.empty() && std::string(p.name).find(wanted.only) == std::string::npos) continue;
    const int n = wanted.small ? p.small : p.size;
    const version cuda = p.cuda(n), openmp = p.openmp(n);
    cuda.run();
    openmp.run();
    must_agree(p, cuda, openmp);
    if (wanted.small) {
      lines.push_back({fmt::format("{}: same result", p.name), 1, "", "1", true});
      continue;
    }
    const pair_of_timings times = paired_timings(
        given.repeats, [&] { openmp.run(); }, openmp.run,
        [&] {
          std::this_thread::sleep_for(until_asleep);
          cuda.run();
        },
        cuda.run);
    const double speed = times.first.median / times.second.median;
    speeds.push_back(speed);
    lines.push_back({fmt::format("{}: speed of CUDA, OpenMP = 1", p.name), speed, "x", ">= 0.25", speed >= 0.25,
                     fmt::format("{:.2f} to {:.2f}", times.first.fastest / times.second.slowest,
                                 times.first.slowest / times.second.fastest)});
    lines.push_back({"  CUDA", times.second.median * 1e3, "ms", "", true});
    lines.push_back({"  OpenMP", times.first.median * 1e3, "ms", "", true});
    lines.push_back({"  CUDA, processor time", times.second.processor * 1e3, "ms", "", true});
    lines.push_back({"  OpenMP, processor time", times.first.processor * 1e3, "ms", "", true});
    if (p.cuda == cuda::jacobi) {
      const double step = times.second.median * 1e3 / jacobi_steps;
      lines.push_back({"  a step of CUDA", step, "ms", "<= 1", step <= 1});
    }
  }
  if (speeds.size() > 1) {
    const double middle = command_line::median(speeds);
    lines.push_back({fmt::format("median of {} pairs", speeds.size()), middle, "x", ">= 0.9", middle >= 0.9});
  }
  return lines;
}

}  // namespace

}  // namespace hpe::bench::pairs

int main(int argc, char** argv) {
  using namespace hpe::bench;
  pairs::options wanted;
  ::setenv("HPE_DEVICES", "soft:1", 0);
  const arguments given =
      parse(argc, argv, "CUDA programs on a soft device, compared with the same programs in OpenMP",
            {{"--threads", "N", "threads of each version (all cores)", to_whole(wanted.threads)},
             {"--only", "WORDS", "only the pairs whose name contains these words", to_text(wanted.only)},
             {"--small", "", "compare the results of small problems, and measure no times", to_flag(wanted.small)}});
  ::setenv("HPE_SOFT_THREADS", std::to_string(wanted.threads).c_str(), 1);
  omp_set_num_threads(static_cast<int>(wanted.threads));
  return report(
      fmt::format("CUDA on a soft device beside OpenMP, {} threads each, {}", wanted.threads, load_of_machine()),
      pairs::measure(given, wanted), given);
}
