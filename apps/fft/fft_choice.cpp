#include "apps/fft/fft_choice.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "hpe/error.hpp"

namespace hpe::fft {

namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw error(HPE_ERROR_INVALID_ARGUMENT, "Fourier transform: " + why);
}

std::string in_words(const problem& p) {
  std::string text = p.rows > 1 ? std::to_string(p.rows) + " x " : "";
  text += std::to_string(p.length);
  return p.batch > 1 ? text + ", batch of " + std::to_string(p.batch) : text;
}

void check_problem(const problem& p, const machine& on) {
  if (p.rows < 1 || p.length < 1 || p.batch < 1)
    refuse(std::to_string(p.rows) + " rows, length " + std::to_string(p.length) + ", batch " + std::to_string(p.batch) +
           ": each must be at least 1");
  // The limit is 2^60 bytes instead of 2^62 bytes, because the form `convolution` uses arrays that are longer than the
  // input.
  const auto most = static_cast<double>(std::int64_t{1} << 60) / static_cast<double>(on.element_bytes);
  if (static_cast<double>(p.rows) * static_cast<double>(p.length) * static_cast<double>(p.batch) > most)
    refuse(in_words(p) + " has more elements than can be addressed");
}

/// Returns the number of bytes of one array below which launches on several devices take more time than they save.
std::int64_t worth_sharing(const machine& on) {
  constexpr std::int64_t soft_bytes = std::int64_t{1} << 20, gpu_bytes = std::int64_t{1} << 24;
  return on.soft ? soft_bytes : gpu_bytes;
}

/// Whether one GPU is predicted to be faster than several GPUs together. One GPU makes a pass over its memory for every
/// nine factors of two in the number of elements. Several GPUs divide this work, and move the array three times over
/// the links between them; each time, each GPU reads a part from every other GPU.
bool better_alone(const problem& p, const machine& on) {
  if (on.soft || on.link <= 0 || on.memory <= 0) return false;
  constexpr double factors_of_a_pass = 9, passes_over_links = 3, both_ways = 2;
  const double bytes = static_cast<double>(p.rows * p.length * on.element_bytes), devices = on.devices;
  const double in_memory = both_ways * bytes / on.memory;  // a pass of one device
  const double alone = std::ceil(std::log2(static_cast<double>(p.rows * p.length)) / factors_of_a_pass) * in_memory;
  const double moved = passes_over_links * bytes * (devices - 1) / (devices * devices) / on.link;
  return alone <= moved + alone / devices;
}

/// Picks the form for a problem. On W devices, `transpose` moves the data 3 (W - 1) / W times between devices, and
/// `exchange` moves them log2 W + (W - 1) / W times: equally often on two devices, and more often on more devices. But
/// a transpose of a matrix of few rows is slow, so the form for such a matrix is `exchange` if the elements must be in
/// natural order and W is a power of two that divides the length. Otherwise it is `transpose` if each device has a row,
/// else `convolution`.
form pick(const problem& p, const settings& wish, const machine& on) {
  const std::int64_t one = p.rows * p.length;
  if (on.devices == 1 || p.batch >= on.devices || one * on.element_bytes < worth_sharing(on)) return form::local;
  if (better_alone(p, on)) return form::local;
  if (p.rows > 1) return form::transpose;
  const std::int64_t rows = nearest_factors(one).first;
  if (rows >= std::max<std::int64_t>(kernels::transpose_edge, on.devices)) return form::transpose;
  if (wish.elements == order::natural && exchanging(one, on.devices) == on.devices) return form::exchange;
  return rows >= on.devices ? form::transpose : form::convolution;
}

}  // namespace

factors convenient_factors(std::int64_t n) {
  constexpr std::int64_t unit = 4;
  const factors nearest = nearest_factors(n);
  if (n % (unit * unit) != 0) return nearest;
  const factors f = nearest_factors(n / (unit * unit));
  // If rows are much longer than columns, the longer transforms cost more time than multiples of four save.
  return f.second * unit <= 2 * nearest.second ? factors{f.first * unit, f.second * unit} : nearest;
}

factors nearest_factors(std::int64_t n) {
  auto first = static_cast<std::int64_t>(std::sqrt(static_cast<double>(n)));
  while (first * first > n) --first;
  while ((first + 1) * (first + 1) <= n) ++first;
  while (n % first != 0) --first;
  return {first, n / first};
}

std::int64_t convenient_length(std::int64_t n) {
  std::int64_t best = 4;
  while (best < n) best *= 2;
  for (std::int64_t fives = 1; fives <= best; fives *= 5)
    for (std::int64_t threes = fives; threes <= best; threes *= 3) {
      std::int64_t candidate = 4 * threes;
      while (candidate < n) candidate *= 2;
      best = std::min(best, candidate);
    }
  return best;
}

int exchanging(std::int64_t n, int most) {
  int parts = 1;
  while (2 * parts <= most && n % (2 * parts) == 0) parts *= 2;
  return parts;
}

const char* name_of(form how) {
  switch (how) {
    case form::automatic: return "automatic";
    case form::local: return "local";
    case form::exchange: return "exchange";
    case form::transpose: return "transpose";
    case form::convolution: return "convolution";
  }
  return "";
}

choice choose(const problem& p, const settings& wish, const machine& on) {
  check_problem(p, on);
  choice made;
  made.how = wish.how == form::automatic ? pick(p, wish, on) : wish.how;
  made.devices = on.devices;
  const std::int64_t one = p.rows * p.length;
  switch (made.how) {
    case form::automatic:
    case form::local:
      if (p.batch == 1) made.devices = 1;
      break;
    case form::exchange:
      made.devices = exchanging(p.length, on.devices);
      if (p.rows > 1)
        refuse(in_words(p) +
               ": the form \"exchange\" transforms only one dimension; \"transpose\" and \"local\" also transform two");
      if (wish.elements == order::scrambled)
        refuse("the form \"exchange\" cannot leave the elements scrambled; \"transpose\" can");
      if (made.devices < 2)
        refuse(in_words(p) + " on " + std::to_string(on.devices) +
               " devices: the form \"exchange\" needs two or more devices and an even length; \"transpose\" and "
               "\"convolution\" do not");
      break;
    case form::transpose: {
      const factors f = p.rows > 1 ? factors{p.rows, p.length} : convenient_factors(p.length);
      made.first = f.first;
      made.second = f.second;
      break;
    }
    case form::convolution:
      if (p.rows > 1)
        refuse(
            in_words(p) +
            ": the form \"convolution\" transforms only one dimension; \"transpose\" and \"local\" also transform two");
      made.longer = convenient_length(2 * one - 1);
      break;
  }
  return made;
}

}  // namespace hpe::fft
