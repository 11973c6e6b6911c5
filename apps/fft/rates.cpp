#include "apps/fft/rates.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "hpe/hpe.hpp"

namespace hpe::fft {

namespace {

constexpr std::size_t most = std::size_t{64} << 20;
constexpr std::size_t least = std::size_t{1} << 20;  // the start of a copy dominates the time of smaller copies

/// Returns the time of the fastest of several copies, in seconds.
double seconds_of_copy(const array<std::byte>& to, const array<std::byte>& from) {
  using clock = std::chrono::steady_clock;
  constexpr int tries = 4;
  double best = 1e9;
  for (int n = 0; n < tries; ++n) {
    synchronize();
    const auto begin = clock::now();
    hpe::copy(to.data(), from.data(), from.size());
    synchronize();
    best = std::min(best, std::chrono::duration<double>(clock::now() - begin).count());
  }
  return best;
}

copy_rates measure(std::size_t bytes) {
  const array<std::byte> here(bytes, on_device(0)), beside(bytes, on_device(0)), there(bytes, on_device(1));
  for (const array<std::byte>* a : {&here, &beside, &there}) hpe::fill(a->data(), 0, bytes);
  const auto moved = static_cast<double>(bytes);
  return {moved / seconds_of_copy(there, here), 2 * moved / seconds_of_copy(beside, here)};
}

/// Measures copies of the largest size that fits.
copy_rates measure() {
  // If the two arrays did not fit on a device together, each copy would first have to move them there.
  const std::uint64_t room = std::min(device_info(0).memory_total, device_info(1).memory_total);
  for (std::size_t bytes = most; bytes >= least; bytes /= 2) {
    if (2 * bytes > room) continue;
    try {
      return measure(bytes);
    } catch (const error& e) {
      if (e.status() != HPE_ERROR_OUT_OF_MEMORY) throw;
    }
  }
  return {};
}

}  // namespace

copy_rates measured_rates() {
  static const copy_rates rates = measure();
  return rates;
}

}  // namespace hpe::fft
