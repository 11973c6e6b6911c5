#include "apps/fft/rates.h"

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "hpe/hpe.hpp"

namespace hpe::fft {

namespace {

constexpr std::size_t bytes = std::size_t{64} << 20;

/// The fastest of several copies, in seconds.
double seconds_of_copy(const array<std::byte>& to, const array<std::byte>& from) {
  using clock = std::chrono::steady_clock;
  constexpr int tries = 4;
  double best = 1e9;
  for (int n = 0; n < tries; ++n) {
    synchronize();
    const auto begin = clock::now();
    hpe::copy(to.data(), from.data(), bytes);
    synchronize();
    best = std::min(best, std::chrono::duration<double>(clock::now() - begin).count());
  }
  return best;
}

copy_rates measure() {
  const array<std::byte> here(bytes, on_device(0)), beside(bytes, on_device(0)), there(bytes, on_device(1));
  for (const array<std::byte>* a : {&here, &beside, &there}) hpe::fill(a->data(), 0, bytes);
  const auto moved = static_cast<double>(bytes);
  return {moved / seconds_of_copy(there, here), 2 * moved / seconds_of_copy(beside, here)};
}

}  // namespace

copy_rates measured_rates() {
  static const copy_rates rates = measure();
  return rates;
}

}  // namespace hpe::fft
