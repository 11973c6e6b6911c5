#include "bench/libraries/fft_comparison.h"
#include "bench/libraries/soft_bars.h"

namespace hpe::bench {

namespace {

template <class T>
void against_fftw(table& all, const peer_problem& p) {
  constexpr double bar = 0.9;
  through_hpe<T> ours(p, {.devices = device_count()});
  compare(all, "fft, " + name_of(p) + ": speed of FFTW, " + ours.explain(), ours,
          make_fftw(p, static_cast<int>(threads_of_devices())).get(), bar);
}

}  // namespace

std::vector<result> transforms_against_fftw(unsigned repeats) {
  if (make_fftw({.length = 1}, 1) == nullptr) return {};
  table all(repeats);
  for (const int power : {18, 20}) against_fftw<float>(all, {.length = std::int64_t{1} << power});
  against_fftw<double>(all, {.length = 1 << 19, .single = false});
  against_fftw<float>(all, {.length = 750000});
  against_fftw<float>(all, {.length = 4096, .batch = 512});
  against_fftw<float>(all, {.rows = 2048, .length = 2048});
  return all.lines;
}

}  // namespace hpe::bench
