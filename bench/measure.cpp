#include "bench/measure.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace hpe::bench {

namespace {

double timed(const std::function<void()>& body) {
  const double start = now();
  body();
  return now() - start;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

}  // namespace

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double median_seconds(unsigned repeats, const std::function<void()>& prepare, const std::function<void()>& body) {
  return paired_medians(
             repeats, prepare, body, [] {}, [] {})
      .first;
}

pair_of_medians paired_medians(unsigned repeats, const std::function<void()>& prepare_first,
                               const std::function<void()>& first, const std::function<void()>& prepare_second,
                               const std::function<void()>& second) {
  std::vector<double> a;
  std::vector<double> b;
  for (unsigned i = 0; i <= repeats; ++i) {
    prepare_first();
    const double one = timed(first);
    prepare_second();
    const double other = timed(second);
    if (i == 0) continue;  // warm-up
    a.push_back(one);
    b.push_back(other);
  }
  return {median(a), median(b)};
}

void print(const std::string& title, const std::vector<result>& results, const std::string& json) {
  fmt::print("{}\n", title);
  for (const result& r : results)
    fmt::print("  {:<58} {:>10.3f} {:<8} {:<14} {}\n", r.what, r.value, r.unit, r.bar,
               r.bar.empty() ? "" : (r.reached ? "reached" : "MISSED"));
  if (json.empty()) return;
  std::FILE* file = std::fopen(json.c_str(), "w");
  if (file == nullptr) {
    fmt::print(stderr, "{}: cannot be written: {}\n", json, std::strerror(errno));  // NOLINT(concurrency-mt-unsafe)
    std::exit(1);                                                                   // NOLINT(concurrency-mt-unsafe)
  }
  fmt::print(file, "[\n");
  for (std::size_t i = 0; i < results.size(); ++i)
    fmt::print(file, "  {{\"what\": \"{}\", \"value\": {}, \"unit\": \"{}\", \"bar\": \"{}\", \"reached\": {}}}{}\n",
               results[i].what, results[i].value, results[i].unit, results[i].bar, results[i].reached,
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
    if (own != more.end() && i + 1 < argc) {
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
