// Measures programs for one GPU that hpe spreads over all devices. The reference is the unchanged program with all
// arrays in the memory of one device; the program with patched kernels on one device is measured too.

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "bench/common/devices.h"
#include "bench/common/measure.h"
#include "bench/spread/runner.h"
#include "bench/spread/single_gpu_kernels.h"

namespace {

using hpe::bench::running_program;
using hpe::bench::timing;
using hpe::bench::way;

struct wishes {
  std::string only;
  double factor = 0;  // 0: on GPUs, the sizes of the thesis and sizes 8 times larger; on soft devices, small sizes
};

/// Runs a program until hpe stops moving its arrays: until, for eight runs and half a second, each run has moved as
/// many arrays and copied as many bytes between devices as the run before. hpe moves an array only if the move saves
/// time, so a short program may need hundreds of runs. Returns the number of runs up to the last change, and the
/// seconds that these runs took.
std::pair<unsigned, double> settle(running_program& p) {
  constexpr unsigned quiet_runs = 8;
  constexpr double quiet_seconds = 0.5, most_seconds = 4;
  using amounts = std::pair<std::uint64_t, std::uint64_t>;
  const auto moved = [] {
    const hpeStatistics s = hpe::statistics();
    return amounts(s.migrations, s.bytes_peer);
  };
  unsigned last = 0;
  double seconds = 0, until = 0;
  amounts usual{};
  for (unsigned run = 1; run <= last + quiet_runs || seconds < until + quiet_seconds; ++run) {
    const amounts before = moved();
    const double begin = hpe::bench::now();
    p.run();
    hpe::synchronize();
    seconds += hpe::bench::now() - begin;
    const amounts after = moved(), in_run(after.first - before.first, after.second - before.second);
    if (in_run != usual) {
      usual = in_run;
      last = run;
      until = seconds;
    }
    if (seconds > most_seconds) break;
  }
  return {last, until};
}

void measure(const hpe::bench::single_gpu_program& program, const hpe::ptx_module& kernels, int devices,
             unsigned repeats, std::vector<hpe::bench::result>& lines) {
  const std::string name = fmt::format("{} {}", program.name, program.size);
  const bool on_gpus = hpe::bench::on_gpus();  // soft devices share the cores of the host and have no targets
  const auto seconds = [&](running_program& p) {
    for (int n = 0; n < 3; ++n) p.run();
    hpe::synchronize();
    return hpe::bench::timed(
        repeats, [] {},
        [&] {
          p.run();
          hpe::synchronize();
        });
  };
  running_program one(program, kernels, way::as_it_is, 1);
  one.fill();
  const timing plain = seconds(one);
  lines.push_back({name + ", one device", plain.median * 1e3, "ms", "", true,
                   fmt::format("({:.3f}..{:.3f})", plain.fastest * 1e3, plain.slowest * 1e3)});
  // Returns the spread of the ratio as text: the reference's median divided by the slowest and by the fastest repeat.
  const auto span = [&](const timing& t) {
    return fmt::format("({:.3f}..{:.3f})", plain.median / t.slowest, plain.median / t.fastest);
  };
  {
    running_program patched(program, kernels, way::patched, 1);
    patched.fill();
    const timing t = seconds(patched);
    const double ratio = plain.median / t.median;
    lines.push_back(
        {"  patched, one device", ratio, "x", on_gpus ? ">= 0.97" : "", !on_gpus || ratio >= 0.97, span(t)});
  }
  running_program spread(program, kernels, way::spread, devices);
  spread.fill();
  const auto [runs, settling] = settle(spread);
  const timing t = seconds(spread);
  const double ratio = plain.median / t.median;
  const bool has_bar = program.bar > 0 && devices == 2 && on_gpus;
  lines.push_back({fmt::format("  spread over {}, {} of {} launches{}", devices, spread.spread_steps(),
                               program.steps.size(), spread.reason().empty() ? "" : "; " + spread.reason()),
                   ratio, "x", has_bar ? fmt::format(">= {}", program.bar) : "", !has_bar || ratio >= program.bar,
                   span(t)});
  if (runs > 0)
    lines.push_back({fmt::format("  time of the {} runs before the measurement, until hpe moved no more arrays", runs),
                     settling * 1e3, "ms"});
  one.fill();
  spread.fill();
  one.run();
  spread.run();
  const auto different = static_cast<double>(differences(one, spread, program, kernels));
  lines.push_back({"  words of the results that differ", different, "", "0", different == 0});
}

/// Measures how much longer it takes to queue a launch if hpe may spread the launch. All launches of the program are so
/// small that hpe keeps them on one device; hpe made this decision in earlier runs.
void measure_decision(const hpe::bench::single_gpu_program& program, const hpe::ptx_module& kernels, int devices,
                      unsigned repeats, std::vector<hpe::bench::result>& lines) {
  running_program one(program, kernels, way::as_it_is, 1), spread(program, kernels, way::spread, devices);
  for (running_program* const p : {&one, &spread}) {
    p->fill();
    p->run();
  }
  const auto finish = [] { hpe::synchronize(); };
  const auto queued = hpe::bench::paired_timings(
      repeats, finish, [&] { one.run(); }, finish, [&] { spread.run(); });
  finish();
  const auto launches = static_cast<double>(program.steps.size());
  const double plain = 1e6 * queued.first.median / launches, over = 1e6 * queued.second.median / launches;
  constexpr double most = 3;
  lines.push_back({fmt::format("a launch of {} {} on one device: queuing", program.name, program.size), plain, "us"});
  lines.push_back(
      {fmt::format("  longer over {} devices, {} of {} spread", devices, spread.spread_steps(), program.steps.size()),
       over - plain, "us", fmt::format("<= {}", most), over - plain <= most});
}

}  // namespace

int main(int argc, char** argv) {
  using namespace hpe::bench;
  wishes w;
  const auto arguments =
      parse(argc, argv, "programs for one GPU, spread over all devices",
            {{"--only", "NAME", "only programs whose name contains NAME; decision: the time to queue a launch",
              to_text(w.only)},
             {"--factor", "X", "sizes X times those of the thesis; default: 1 and 8 on GPUs, 1/64 on soft devices",
              hpe::command_line::to_positive(w.factor)}});
  const hpe::ptx_module kernels(single_gpu_kernels());
  const int devices = hpe::device_count();
  std::vector<double> factors{1, 8};
  if (!on_gpus()) factors = {1.0 / 64};
  if (w.factor > 0) factors = {w.factor};
  std::vector<result> lines;
  if (w.only.empty() || w.only == "decision") {
    constexpr double tiny = 0x1p-10;
    const std::vector<named_program> all = single_gpu_programs(tiny);
    const auto search = std::find_if(all.begin(), all.end(), [](const named_program& p) { return p.name == "BFS"; });
    measure_decision(search->make(), kernels, devices, 10 * arguments.repeats, lines);
  }
  for (const double factor : factors) {
    for (const named_program& each : single_gpu_programs(factor))
      if (each.name.find(w.only) != std::string::npos) measure(each.make(), kernels, devices, arguments.repeats, lines);
  }
  return report(fmt::format("spread: {} x {}, {}", devices, hpe::device_info(0).name, load_of_machine()), lines,
                arguments);
}
