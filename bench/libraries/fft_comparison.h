#pragma once

/// Compares Fourier transforms through hpe with transforms of another library or of hand-written code.

#include <fmt/core.h>

#include <cmath>
#include <string>
#include <vector>

#include "apps/fft/fft.h"
#include "bench/common/devices.h"
#include "bench/common/table.h"
#include "bench/libraries/fft_peers.h"
#include "hpe/hpe.hpp"

namespace hpe::bench {

/// A transform through hpe; its arrays are placed on the devices as its plan prefers.
template <class T>
class through_hpe final : public peer {
 public:
  through_hpe(const peer_problem& p, const fft::settings& s)
      : plan_({.rows = p.rows, .length = p.length, .batch = p.batch}, s),
        in_(static_cast<std::size_t>(p.rows * p.length * p.batch), plan_.where()),
        out_(in_.size(), plan_.where()) {
    fill(in_.data(), 1, in_.size() * sizeof(std::complex<T>));
  }
  void run(int times) override {
    for (int i = 0; i < times; ++i) plan_.forward(in_.data(), out_.data());
    synchronize();
  }
  [[nodiscard]] std::string explain() const { return plan_.explain(); }

 private:
  fft::plan<T> plan_;
  array<std::complex<T>> in_, out_;
};

inline std::string name_of(const peer_problem& p) {
  const auto size = [](std::int64_t n) {
    const auto power = static_cast<int>(std::lround(std::log2(static_cast<double>(n))));
    return n == std::int64_t{1} << power && n > 9999 ? fmt::format("2^{}", power) : std::to_string(n);
  };
  return fmt::format("{}{}{}{}", p.rows > 1 ? size(p.rows) + " x " : "", size(p.length),
                     p.batch > 1 ? " batch " + size(p.batch) : "", p.single ? "" : " double");
}

/// Adds to t: the ratio of the speeds of `ours` and `other`, both times and, on soft devices, the ratio of their
/// processor times. Does nothing if `other` is null. bar: the least ratio of the speeds that meets the target; 0: no
/// target.
inline void compare(table& t, const std::string& what, peer& ours, peer* other, double bar) {
  constexpr int runs = 5;
  if (other == nullptr) return;
  const auto times = paired_timings(
      t.repeats, [] {}, [&] { ours.run(runs); }, [] {}, [&] { other->run(runs); });
  t.ratio(what, times.first, times.second, bar);
  fmt::print(stderr, "{}: {:.3f}\n", what, t.lines.back().value);
  t.number("  ours", times.first.median / runs * 1e3, "ms");
  t.number("  theirs", times.second.median / runs * 1e3, "ms");
  if (!on_gpus()) t.number("  by processor time", times.second.processor / times.first.processor, "x");
}

}  // namespace hpe::bench
