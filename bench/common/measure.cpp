#include "bench/common/measure.h"

#include <fmt/chrono.h>
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "bench/commit.h"
#include "bench/common/charts.h"
#include "bench/common/processor_time.h"

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

/// The processor's name and the number of cores.
std::string this_machine() {
  std::ifstream info("/proc/cpuinfo");
  std::string name = "unknown processor";
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name") && line.find(": ") != std::string::npos) {
      name = line.substr(line.find(": ") + 2);
      break;
    }
  return fmt::format("{}, {} cores", name, std::thread::hardware_concurrency());
}

nlohmann::json as_json(const result& r) {
  return {{"what", r.what},     {"value", r.value}, {"unit", r.unit},
          {"spread", r.spread}, {"bar", r.bar},     {"reached", r.reached}};
}

}  // namespace

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double median_seconds(unsigned repeats, const std::function<void()>& prepare, const std::function<void()>& body) {
  return timed(repeats, prepare, body).median;
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
  std::vector<sample> a;
  std::vector<sample> b;
  for (unsigned i = 0; i <= repeats; ++i) {
    prepare_first();
    const sample one = measure(first);
    prepare_second();
    const sample other = measure(second);
    if (i == 0) continue;  // warm-up
    a.push_back(one);
    b.push_back(other);
  }
  return {summary(std::move(a)), summary(std::move(b))};
}

std::string load_of_machine() {
  double load = 0;
  if (!(std::ifstream("/proc/loadavg") >> load)) return "load unknown";
  return fmt::format("load {:.1f} on {} cores", load, std::thread::hardware_concurrency());
}

arguments parse(int argc, char** argv, const char* sentence, const std::vector<option>& more) {
  arguments result;
  result.about = sentence;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--describe") {
      fmt::print("{}\n", sentence);
      std::exit(0);  // NOLINT(concurrency-mt-unsafe)
    }
    if (word == "--help") {
      fmt::print(
          "{}\n\n  --repeats N   counted runs of each measurement (default {})\n  --json FILE   write the table as "
          "JSON too\n  --enforce     exit with status 1 if a figure misses its bar\n",
          sentence, result.repeats);
      for (const option& o : more) fmt::print("  {:<13} {}\n", o.name + " " + o.value, o.help);
      std::exit(0);  // NOLINT(concurrency-mt-unsafe)
    }
    const auto own = std::find_if(more.begin(), more.end(), [&](const option& o) { return o.name == word; });
    if (own != more.end() && own->value.empty()) {
      *own->place = "yes";
    } else if (own != more.end() && i + 1 < argc) {
      *own->place = argv[++i];
    } else if (word == "--repeats" && i + 1 < argc && std::atoi(argv[i + 1]) > 0) {
      result.repeats = static_cast<unsigned>(std::atoi(argv[++i]));
    } else if (word == "--json" && i + 1 < argc) {
      result.json = argv[++i];
    } else if (word == "--enforce") {
      result.enforce = true;
    } else {
      fmt::print(stderr, "{}: unknown or incomplete option {}; --help lists what there is\n", argv[0], word);
      std::exit(2);  // NOLINT(concurrency-mt-unsafe)
    }
  }
  return result;
}

int report(const std::string& title, const std::vector<result>& results, const arguments& given) {
  fmt::print("{}\n", title);
  for (const result& r : results)
    fmt::print("  {:<66} {:>10.3f} {:<5} {:<17} {:<10} {}\n", r.what, r.value, r.unit, r.spread, r.bar,
               r.bar.empty() ? "" : (r.reached ? "reached" : "MISSED"));
  if (!given.json.empty()) {
    nlohmann::json table{{"program", ::program_invocation_short_name},
                         {"about", given.about},
                         {"title", title},
                         {"commit", HPE_COMMIT},
                         {"machine", this_machine()},
                         {"time", fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)))},
                         {"repeats", given.repeats},
                         {"results", nlohmann::json::array()}};
    for (const result& r : results) table["results"].push_back(as_json(r));
    write_file(given.json, table.dump(2) + '\n');
  }
  const bool missed =
      std::any_of(results.begin(), results.end(), [](const result& r) { return !r.bar.empty() && !r.reached; });
  return given.enforce && missed ? EXIT_FAILURE : EXIT_SUCCESS;
}

}  // namespace hpe::bench
