// Fourier transforms through hpe against the libraries that have them and against copies written by hand, side by side
// in one run. Soft devices: FFTW on as many threads as the devices have. GPUs: cuFFT, cufftXt, and the exchange between
// pairs with the copy schemes of the thesis.

#include "apps/fft/fft.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <vector>

#include "bench/fft_peers.h"
#include "bench/measure.h"
#include "hpe/hpe.hpp"

namespace {

using hpe::bench::peer;
using hpe::bench::peer_problem;
using hpe::bench::result;
using hpe::bench::scheme;
namespace fft = hpe::fft;

/// A transform through hpe, on data that is spread over the devices that take part.
template <class T>
class through_hpe final : public peer {
 public:
  through_hpe(const peer_problem& p, const fft::settings& s)
      : plan_({.rows = p.rows, .length = p.length, .batch = p.batch}, s),
        in_(static_cast<std::size_t>(p.rows * p.length * p.batch), over(s)),
        out_(in_.size(), over(s)) {
    hpe::fill(in_.data(), 1, in_.size() * sizeof(std::complex<T>));
  }
  void run(int times) override {
    for (int i = 0; i < times; ++i) plan_.forward(in_.data(), out_.data());
    hpe::synchronize();
  }
  [[nodiscard]] std::string explain() const { return plan_.explain(); }

 private:
  static hpe::placement over(const fft::settings& s) {
    std::vector<int> list;
    for (int d = 0; d < s.devices; ++d) list.push_back(d);
    return s.devices == 1 ? hpe::on_device(0) : hpe::block_distribution(list);
  }

  fft::plan<T> plan_;
  hpe::array<std::complex<T>> in_, out_;
};

std::string name_of(const peer_problem& p) {
  const auto size = [](std::int64_t n) {
    const auto power = static_cast<int>(std::lround(std::log2(static_cast<double>(n))));
    return n == std::int64_t{1} << power && n > 9999 ? fmt::format("2^{}", power) : std::to_string(n);
  };
  return fmt::format("{}{}{}{}", p.rows > 1 ? size(p.rows) + " x " : "", size(p.length),
                     p.batch > 1 ? " batch " + size(p.batch) : "", p.single ? "" : " double");
}

class table {
 public:
  explicit table(unsigned repeats) : repeats_(repeats) {}

  /// The speed of ours against other's. bar 0: none.
  void compare(const std::string& what, peer& ours, peer* other, double bar) {
    if (other == nullptr) return;
    const auto times = hpe::bench::paired_timings(
        repeats_, [] {}, [&] { ours.run(runs); }, [] {}, [&] { other->run(runs); });
    const double ratio = times.second.median / times.first.median;
    fmt::print(stderr, "{}: {:.3f}\n", what, ratio);
    rows_.push_back({what, ratio, "x", bar == 0 ? "" : fmt::format(">= {}", bar), ratio >= bar});
    rows_.push_back({"  ours", times.first.median / runs * 1e3, "ms", "", true});
    rows_.push_back({"  theirs", times.second.median / runs * 1e3, "ms", "", true});
    if (hpe::device_info(0).kind != HPE_DEVICE_SOFT) return;
    rows_.push_back({"  by processor time", times.second.processor / times.first.processor, "x", "", true});
  }

  [[nodiscard]] const std::vector<result>& rows() const { return rows_; }

 private:
  static constexpr int runs = 5;
  unsigned repeats_;
  std::vector<result> rows_;
};

template <class T>
void on_soft_devices(table& all, const peer_problem& p, int devices, int threads, double bar) {
  through_hpe<T> ours(p, {.devices = devices});
  all.compare(name_of(p) + ": speed of FFTW, " + ours.explain(), ours, hpe::bench::make_fftw(p, threads).get(), bar);
}

void soft(table& all, int devices) {
  const int threads = static_cast<int>(hpe::device_info(0).compute_units) * devices;
  constexpr double bar = 0.9;
  for (const int power : {18, 20})
    on_soft_devices<float>(all, {.length = std::int64_t{1} << power}, devices, threads, bar);
  on_soft_devices<double>(all, {.length = 1 << 19, .single = false}, devices, threads, bar);
  on_soft_devices<float>(all, {.length = 750000}, devices, threads, bar);
  on_soft_devices<float>(all, {.length = 4096, .batch = 512}, devices, threads, bar);
  on_soft_devices<float>(all, {.rows = 2048, .length = 2048}, devices, threads, bar);
}

void one_gpu(table& all) {
  const fft::settings one{.devices = 1};
  for (const peer_problem& p : {peer_problem{.length = std::int64_t{1} << 26},
                                {.length = 1 << 26, .single = false},
                                {.length = 1 << 20},
                                {.length = 4096, .batch = 1 << 14},
                                {.rows = 8192, .length = 8192},
                                {.length = 50000017}}) {
    const auto other = hpe::bench::make_cufft(p);
    const std::string what = name_of(p) + ": speed of cuFFT, one GPU";
    const double bar = p.length == std::int64_t{1} << 26 ? 0.97 : 0;
    if (p.single) {
      through_hpe<float> ours(p, one);
      all.compare(what, ours, other.get(), bar);
    } else {
      through_hpe<double> ours(p, one);
      all.compare(what, ours, other.get(), bar);
    }
  }
}

void several_gpus(table& all, int gpus) {
  for (const int power : {26, 28}) {
    const peer_problem p{.length = std::int64_t{1} << power};
    const std::string where = fmt::format("2^{} on {} GPUs: ", power, gpus);
    const auto ours = [&](fft::form how, fft::order elements) {
      return through_hpe<float>(p, {.how = how, .elements = elements, .devices = gpus});
    };
    {
      auto scrambled = ours(fft::form::transpose, fft::order::scrambled);
      all.compare(where + "speed of cufftXt, each in its own order", scrambled,
                  hpe::bench::make_cufft_over(p.length, gpus, false).get(), 0.9);
    }
    auto natural = ours(fft::form::automatic, fft::order::natural);
    all.compare(where + "speed of cufftXt, natural order", natural,
                hpe::bench::make_cufft_over(p.length, gpus, true).get(), 0.9);
    {
      auto exchange = ours(fft::form::exchange, fft::order::natural);
      all.compare(where + "automatic against exchange", natural, &exchange, 0);
    }
    {
      auto transpose = ours(fft::form::transpose, fft::order::natural);
      all.compare(where + "automatic against transpose", natural, &transpose, 0);
    }
    all.compare(where + "against one GPU, cuFFT", natural, hpe::bench::make_cufft(p).get(), 0);
    all.compare(where + "against copies by hand, peer", natural,
                hpe::bench::make_by_hand(p.length, gpus, scheme::peer).get(), 0.97);
    if (power > 26) continue;
    all.compare(where + "against copies by hand, pinned", natural,
                hpe::bench::make_by_hand(p.length, gpus, scheme::pinned).get(), 0.97);
    all.compare(where + "against copies by hand, naive", natural,
                hpe::bench::make_by_hand(p.length, gpus, scheme::naive).get(), 0.97);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = hpe::bench::parse(
      argc, argv, "Fourier transforms through hpe, against FFTW, or cuFFT, cufftXt and copies by hand");
  table all(arguments.repeats);
  const int devices = hpe::device_count();
  if (hpe::device_info(0).kind == HPE_DEVICE_SOFT) {
    soft(all, devices);
  } else {
    if (devices == 1) one_gpu(all);
    if (devices > 1) several_gpus(all, devices);
  }
  hpe::bench::print("fft, " + hpe::bench::load_of_machine(), all.rows(), arguments.json);
  return 0;
}
