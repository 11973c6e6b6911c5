#include "kernels/fft/roots.h"

#include <cmath>
#include <map>
#include <mutex>
#include <numbers>
#include <vector>

namespace hpe::kernels {

namespace {

struct tables {
  std::vector<complex_number<double>> coarse, fine;
};

complex_number<double> root(int64_t n, int64_t m) {
  const long double angle = 2 * std::numbers::pi_v<long double> * static_cast<long double>(m) / n;
  return {static_cast<double>(std::cos(angle)), static_cast<double>(std::sin(angle))};
}

}  // namespace

root_table roots_of_unity(int64_t n) {
  static std::mutex mutex;
  static std::map<int64_t, tables> all;
  int32_t shift = 0;
  while ((n >> shift >> shift) > 1) ++shift;
  const std::lock_guard lock(mutex);
  tables& mine = all[n];
  if (mine.coarse.empty()) {
    for (int64_t m = 0; m < int64_t{1} << shift; ++m) mine.fine.push_back(root(n, m));
    for (int64_t m = 0; m <= n >> shift; ++m) mine.coarse.push_back(root(n, m << shift));
  }
  return {mine.coarse.data(), mine.fine.data(), shift, (int64_t{1} << shift) - 1};
}

}  // namespace hpe::kernels
