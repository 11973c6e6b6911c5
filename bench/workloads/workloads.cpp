// The workloads through hpe: the speed-up on several devices, compared with hand-written programs that use the copy
// schemes of J. Cabezas, "On the Programmability of Multi-GPU Computing Systems" (2015), Figures 5.8 and 5.9, and with
// libraries on the host's threads.

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "apps/fft/fft_request.h"
#include "bench/common/devices.h"
#include "bench/libraries/soft_bars.h"
#include "bench/workloads/comparison.h"

namespace hpe::bench {

namespace {

int soft_bars(const arguments& given) {
  if (on_gpus()) {
    fmt::print(stderr, "--soft-bars needs soft devices, but the devices are GPUs; set HPE_DEVICES=soft:2\n");
    return 2;
  }
  std::vector<result> rows;
  for (const auto& part : {scans_against_tbb, transforms_against_fftw, sorts_against_boost}) {
    const std::vector<result> some = part(given.repeats);
    if (some.empty()) fmt::print("fft: left out, because hpe was built without FFTW\n");
    rows.insert(rows.end(), some.begin(), some.end());
  }
  return report(fmt::format("bars of {} soft devices, {}", device_count(), load_of_machine()), rows, given);
}

int run(int argc, char** argv) {
  std::string charts_file, only;
  fft::form how = fft::form::automatic;
  bool bars = false, alone = false;
  const arguments given =
      parse(argc, argv,
            "wave, RTM step, FFT, scan and sort: speed-up over one device, compared with programs written by "
            "hand and libraries",
            {{"--charts", "FILE",
              "write charts of the speed-ups and of the shares of exchanges to FILE ('scripts/measurements draw FILE' "
              "draws them)",
              to_text(charts_file)},
             {"--only", "NAME", "one of them: wave, rtm step, fft, scan or sort",
              to_word(only, {"wave", "rtm step", "fft", "scan", "sort"})},
             {"--form", "FORM", "the form of the FFT through hpe, as for hpe fft (automatic)",
              command_line::to_one_of(how, fft::forms())},
             {"--alone", "", "run only hpe's version, on all devices, for example for a trace", to_flag(alone)},
             {"--soft-bars", "", "on soft devices, compare only scan, FFT and sort with oneTBB, FFTW and Boost.Sort",
              to_flag(bars)}});
  if (bars) return soft_bars(given);
  std::vector<result> rows;
  std::vector<chart> speed_ups, exchanges;
  for (const workload& w : {wave_workload(), rtm_workload(), fft_workload(how), scan_workload(), sort_workload()}) {
    if (!only.empty() && only != w.name) continue;
    if (!w.not_here.empty()) {
      fmt::print("{}: left out: {}\n", w.name, w.not_here);
      continue;
    }
    if (alone) {
      const std::unique_ptr<program> one = w.through_hpe(device_count());
      const double seconds = median_seconds(
          given.repeats, [&] { one->reset(); }, [&] { one->run(); });
      rows.push_back({fmt::format("{}, {}", w.name, w.size), 1e3 * seconds, "ms"});
      continue;
    }
    const comparison c = compare(w, given.repeats);
    rows.insert(rows.end(), c.rows.begin(), c.rows.end());
    speed_ups.push_back(c.speed_up);
    exchanges.push_back(c.exchange);
  }
  const std::string machine = fmt::format("{} x {}", device_count(), device_info(0).name);
  const int status = report(fmt::format("workloads on {}, {}", machine, load_of_machine()), rows, given);
  command_line::write_text(
      as_json(machine, {{"speed-up over one device", speed_ups}, {"share of time in exchange", exchanges}}),
      charts_file);
  return status;
}

}  // namespace

}  // namespace hpe::bench

int main(int argc, char** argv) { return hpe::bench::run(argc, argv); }
