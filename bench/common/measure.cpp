#include "bench/common/measure.h"

#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <string>
#include <thread>

#include "apps/command_line/program.h"
#include "bench/common/processor_time.h"
#include "hpe/hpe.h"
#include "runtime/base/options.h"

namespace hpe::bench {

namespace {

struct sample {
  double seconds, processor;
};

sample measure(const std::function<void()>& body) {
  const double processor = processor_seconds(), start = now();
  body();
  const double end = now();
  return {end - start, processor_seconds() - processor};
}

timing summary(std::vector<sample> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::sort(values.begin(), values.end(), [](const sample& a, const sample& b) { return a.processor < b.processor; });
  const double processor = middle->processor;
  std::sort(values.begin(), values.end(), [](const sample& a, const sample& b) { return a.seconds < b.seconds; });
  return {middle->seconds, values.front().seconds, values.back().seconds, processor};
}

/// The terminate handler: prints the exception's message and ends the benchmark with status 1, as hpe's commands do.
[[noreturn]] void end_with_its_sentence() {
  if (std::current_exception() == nullptr) std::abort();
  std::fflush(stdout);
  const int status = command_line::guarded(::program_invocation_short_name,
                                           []() -> int { std::rethrow_exception(std::current_exception()); });
  std::_Exit(status);
}

struct devices_there {
  int count;
  bool gpus;
};

/// Counts the devices that HPE_DEVICES opens. A child process opens them, because a process can open its devices only
/// once.
devices_there count_devices() {
  constexpr int of_gpus = 64;
  const pid_t child = ::fork();
  if (child == 0) {
    hpeDeviceInfo first;
    int count = 0;
    if (hpeGetDeviceCount(&count) != HPE_SUCCESS || hpeGetDeviceInfo(0, &first) != HPE_SUCCESS) ::_exit(0);
    ::_exit(count + (first.kind == HPE_DEVICE_CUDA ? of_gpus : 0));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const int answer = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  return {answer % of_gpus, answer >= of_gpus};
}

/// Sets HPE_DEVICES to the first `devices` of the devices that it names.
void use_first(std::int64_t devices) {
  const std::string named = options::from_environment().devices;
  const devices_there all = count_devices();
  if (all.count == 0) return;  // hpe prints the reason when the benchmark starts hpe
  if (devices > all.count)
    throw command_line::bad_input(fmt::format("--devices {}: there are {} devices", devices, all.count));
  if (devices == all.count) return;
  if (named.find('x') != std::string::npos)
    throw command_line::bad_input(
        fmt::format("--devices {} cannot select devices from HPE_DEVICES={}; set HPE_DEVICES to the wanted devices",
                    devices, named));
  const std::string first = fmt::format("{}:{}", all.gpus ? "cuda" : "soft", devices);
  ::setenv("HPE_DEVICES", first.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double median_seconds(unsigned repeats, const std::function<void()>& prepare, const std::function<void()>& body) {
  std::vector<double> seconds;
  for (unsigned i = 0; i <= repeats; ++i) {
    prepare();
    const double start = now();
    body();
    if (i > 0) seconds.push_back(now() - start);  // the first repeat warms up and is not counted
  }
  std::nth_element(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2), seconds.end());
  return seconds[seconds.size() / 2];
}

timing timed(unsigned repeats, const std::function<void()>& prepare, const std::function<void()>& body) {
  return paired_timings(
             repeats, prepare, body, [] {}, [] {})
      .first;
}

pair_of_medians paired_medians(unsigned repeats, const std::function<void()>& prepare_first,
                               const std::function<void()>& first, const std::function<void()>& prepare_second,
                               const std::function<void()>& second) {
  const pair_of_timings both = paired_timings(repeats, prepare_first, first, prepare_second, second);
  return {both.first.median, both.second.median};
}

pair_of_timings paired_timings(unsigned repeats, const std::function<void()>& prepare_first,
                               const std::function<void()>& first, const std::function<void()>& prepare_second,
                               const std::function<void()>& second) {
  const std::vector<timing> both = timings_by_turns(repeats, {{prepare_first, first}, {prepare_second, second}});
  return {both[0], both[1]};
}

std::vector<timing> timings_by_turns(unsigned repeats, const std::vector<contender>& contenders) {
  std::vector<std::vector<sample>> samples(contenders.size());
  for (unsigned i = 0; i <= repeats; ++i)
    for (std::size_t c = 0; c < contenders.size(); ++c) {
      contenders[c].prepare();
      const sample one = measure(contenders[c].body);
      if (i > 0) samples[c].push_back(one);  // the first repeat warms up and is not counted
    }
  std::vector<timing> result;
  for (std::vector<sample>& of_one : samples) result.push_back(summary(std::move(of_one)));
  return result;
}

std::string load_of_machine() {
  double load = 0;
  if (!(std::ifstream("/proc/loadavg") >> load)) return "load unknown";
  return fmt::format("load {:.1f} on {} cores", load, std::thread::hardware_concurrency());
}

arguments parse(int argc, char** argv, const char* sentence, const std::vector<command_line::option>& more) {
  using namespace command_line;
  std::set_terminate(end_with_its_sentence);
  arguments result;
  result.about = sentence;
  bool describe = false, help = false;
  std::int64_t repeats = result.repeats, devices = 0;
  std::vector<option> table{devices_option(devices), repeats_option(repeats), json_option(result.json),
                            quiet_option(result.quiet)};
  table.push_back({"--enforce", "", "exit with status 1 if a figure misses its target", to_flag(result.enforce)});
  for (const option& own : more) std::erase_if(table, [&](const option& o) { return o.name == own.name; });
  table.insert(table.end(), more.begin(), more.end());
  table.push_back({"--describe", "", "print a line that describes the benchmark", to_flag(describe)});
  table.push_back(help_option(help));
  const int status = guarded(::program_invocation_short_name, [&] {
    read(table, argc, argv);
    check_outputs({result.json});
    if (devices != 0 && !describe && !help) use_first(devices);
    return 0;
  });
  if (status != 0) std::exit(status);  // NOLINT(concurrency-mt-unsafe)
  result.repeats = static_cast<unsigned>(repeats);
  if (!describe && !help) return result;
  fmt::print("{}\n", sentence);
  if (help) fmt::print("\nUsage: {} [options]\n\n{}", ::program_invocation_short_name, lines_of_help(table));
  std::exit(0);  // NOLINT(concurrency-mt-unsafe)
}

int report(const std::string& title, const std::vector<result>& results, const arguments& given) {
  std::string text = title + "\n";
  for (const result& r : results)
    text += fmt::format("  {:<66} {:>10.3f} {:<5} {:<17} {:<10} {}\n", r.what, r.value, r.unit, r.spread, r.bar,
                        r.bar.empty() ? "" : (r.reached ? "reached" : "MISSED"));
  command_line::answer({::program_invocation_short_name, given.about, title, given.repeats, {}, results}, text,
                       given.json, given.quiet);
  const bool missed =
      std::any_of(results.begin(), results.end(), [](const result& r) { return !r.bar.empty() && !r.reached; });
  return command_line::with_output_written(::program_invocation_short_name,
                                           given.enforce && missed ? EXIT_FAILURE : EXIT_SUCCESS);
}

}  // namespace hpe::bench
