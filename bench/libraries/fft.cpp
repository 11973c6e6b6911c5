// Fourier transforms through hpe, compared with libraries and with hand-written copies, in turn in one run. The
// reference on soft devices is FFTW on as many threads as the devices have. The references on GPUs are cuFFT, cufftXt,
// and a transform with hand-written exchanges between pairs of GPUs, in the copy schemes of the thesis (fft_peers.h).

#include "apps/fft/fft.h"

#include <fmt/core.h>

#include "bench/common/devices.h"
#include "bench/common/measure.h"
#include "bench/libraries/fft_comparison.h"
#include "bench/libraries/fft_peers.h"
#include "bench/libraries/soft_bars.h"

namespace {

using hpe::bench::name_of;
using hpe::bench::peer_problem;
using hpe::bench::scheme;
using hpe::bench::table;
using hpe::bench::through_hpe;
namespace fft = hpe::fft;

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
      compare(all, what, ours, other.get(), bar);
    } else {
      through_hpe<double> ours(p, one);
      compare(all, what, ours, other.get(), bar);
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
      compare(all, where + "hpe's speed / cufftXt's speed, each in its own order", scrambled,
              hpe::bench::make_cufft_over(p.length, gpus, false).get(), 0.9);
    }
    auto natural = ours(fft::form::automatic, fft::order::natural);
    compare(all, where + "hpe's speed / cufftXt's speed, natural order", natural,
            hpe::bench::make_cufft_over(p.length, gpus, true).get(), 0.9);
    {
      auto exchange = ours(fft::form::exchange, fft::order::natural);
      compare(all, where + "automatic against exchange", natural, &exchange, 0);
    }
    {
      auto transpose = ours(fft::form::transpose, fft::order::natural);
      compare(all, where + "automatic against transpose", natural, &transpose, 0);
    }
    compare(all, where + "against one GPU, cuFFT", natural, hpe::bench::make_cufft(p).get(), 0);
    compare(all, where + "against copies by hand, peer", natural,
            hpe::bench::make_by_hand(p.length, gpus, scheme::peer).get(), 0.97);
    if (power > 26) continue;
    compare(all, where + "against copies by hand, pinned", natural,
            hpe::bench::make_by_hand(p.length, gpus, scheme::pinned).get(), 0.97);
    compare(all, where + "against copies by hand, naive", natural,
            hpe::bench::make_by_hand(p.length, gpus, scheme::naive).get(), 0.97);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = hpe::bench::parse(
      argc, argv, "Fourier transforms through hpe, compared with FFTW, or with cuFFT, cufftXt and copies by hand");
  const std::string title = "fft, " + hpe::bench::load_of_machine();
  if (!hpe::bench::on_gpus()) {
    return hpe::bench::report(title, hpe::bench::transforms_against_fftw(arguments.repeats), arguments);
  }
  table all(arguments.repeats);
  const int devices = hpe::device_count();
  devices == 1 ? one_gpu(all) : several_gpus(all, devices);
  return hpe::bench::report(title, all.lines, arguments);
}
