#include "bench/measure.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include "bench/processor_time.h"

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

void print(const std::string& title, const std::vector<result>& results, const std::string& json) {
  fmt::print("{}\n", title);
  for (const result& r : results)
    fmt::print("  {:<66} {:>10.3f} {:<5} {:<17} {:<10} {}\n", r.what, r.value, r.unit, r.spread, r.bar,
               r.bar.empty() ? "" : (r.reached ? "reached" : "MISSED"));
  if (json.empty()) return;
  std::FILE* file = std::fopen(json.c_str(), "w");
  if (file == nullptr) {
    fmt::print(stderr, "{}: cannot be written: {}\n", json, std::strerror(errno));  // NOLINT(concurrency-mt-unsafe)
    std::exit(1);                                                                   // NOLINT(concurrency-mt-unsafe)
  }
  fmt::print(file, "[\n");
  for (std::size_t i = 0; i < results.size(); ++i)
    fmt::print(
        file,
        "  {{\"what\": \"{}\", \"value\": {}, \"unit\": \"{}\", \"spread\": \"{}\", \"bar\": \"{}\", \"reached\": "
        "{}}}{}\n",
        results[i].what, results[i].value, results[i].unit, results[i].spread, results[i].bar, results[i].reached,
        i + 1 < results.size() ? "," : "");
  fmt::print(file, "]\n");
  std::fclose(file);
}

arguments parse(int argc, char** argv, const char* sentence, const std::vector<option>& more) {
  arguments result;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--describe") {
      fmt::print("{}\n", sentence);
      std::exit(0);  // NOLINT(concurrency-mt-unsafe)
    }
    if (word == "--help") {
      fmt::print(
          "{}\n\n  --repeats N   counted runs of each measurement (default {})\n  --json FILE   write the table as "
          "JSON too\n",
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
    } else {
      fmt::print(stderr, "{}: unknown or incomplete option {}; --help lists what there is\n", argv[0], word);
      std::exit(2);  // NOLINT(concurrency-mt-unsafe)
    }
  }
  return result;
}

}  // namespace hpe::bench
