// A transform computes its chirps only once, when it is created; therefore, this code is simple and not optimised.

#include <cmath>
#include <numbers>

#include "hpe/kernel.h"
#include "kernels/fft_parameters.h"

namespace {

using namespace hpe::kernels;

template <class T>
complex_number<T> chirp(const fft_chirp<T>& p, int64_t i) {
  int64_t j = i;
  if (p.period > 0 && p.period - i < i) j = p.period - i;
  if (j >= p.length) return {0, 0};
  // j^2 is reduced modulo 2 length, which keeps the angle exact.
  const auto square = static_cast<int64_t>(static_cast<unsigned __int128>(j) * j % (2 * p.length));
  const long double angle = std::numbers::pi_v<long double> * square / p.length;
  return {static_cast<T>(std::cos(angle)), static_cast<T>(p.sign * std::sin(angle))};
}

template <class T>
void run(const fft_chirp<T>& p, const hpeTiles& tiles) {
  for (uint64_t tile = tiles.begin; tile < tiles.end; ++tile)
    for (int64_t k = 0; k < tile_elements; ++k) {
      const int64_t i = p.begin + static_cast<int64_t>(tile) * tile_elements + k;
      if (i < p.end) p.target[i] = chirp(p, i);
    }
}

}  // namespace

HPE_HOST_KERNEL(fft_chirp_f32, fft_chirp<float>) { run(*parameters, *tiles); }
HPE_HOST_KERNEL(fft_chirp_f64, fft_chirp<double>) { run(*parameters, *tiles); }
