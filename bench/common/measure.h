#pragma once

/// Functions and types that all benchmarks use: command line, medians of repeated timings, and the table of results and
/// targets.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "apps/command_line/charts.h"
#include "apps/command_line/report.h"
#include "apps/command_line/values.h"

namespace hpe::bench {

using command_line::as_json;
using command_line::axis;
using command_line::chart;
using command_line::line;
using command_line::picture;
using command_line::scale;
using command_line::to_flag;
using command_line::to_text;
using command_line::to_whole;
using command_line::to_word;

/// Returns the time of a monotonic clock, in seconds.
[[nodiscard]] double now();

/// Calls prepare() and body() once to warm up, then `repeats` times. Returns the median of the seconds that body()
/// takes.
[[nodiscard]] double median_seconds(unsigned repeats, const std::function<void()>& prepare,
                                    const std::function<void()>& body);

/// The result of timed(), which measures as median_seconds() does: the seconds of the median, fastest and slowest
/// repeat.
struct timing {
  double median;
  double fastest;
  double slowest;
  double processor = 0;  ///< median of the processor time in seconds (bench/common/processor_time.h)
};
[[nodiscard]] timing timed(unsigned repeats, const std::function<void()>& prepare, const std::function<void()>& body);

/// The results of paired_medians() and paired_timings(), which time two bodies in turn (A B A B ...), so that a drift
/// of the machine's speed affects both equally.
struct pair_of_medians {
  double first;
  double second;
};
struct pair_of_timings {
  timing first;
  timing second;
};
[[nodiscard]] pair_of_timings paired_timings(unsigned repeats, const std::function<void()>& prepare_first,
                                             const std::function<void()>& first,
                                             const std::function<void()>& prepare_second,
                                             const std::function<void()>& second);
/// A body for timings_by_turns(), which times any number of bodies in turn.
struct contender {
  std::function<void()> prepare, body;
};
[[nodiscard]] std::vector<timing> timings_by_turns(unsigned repeats, const std::vector<contender>& contenders);
[[nodiscard]] pair_of_medians paired_medians(unsigned repeats, const std::function<void()>& prepare_first,
                                             const std::function<void()>& first,
                                             const std::function<void()>& prepare_second,
                                             const std::function<void()>& second);

/// Returns the load average of the last minute (the mean number of runnable threads on the machine) as text for titles.
[[nodiscard]] std::string load_of_machine();

/// A line of the table of results.
using result = command_line::figure;

/// The values of the options that every benchmark has. --describe prints the sentence about the benchmark and ends the
/// program; --help also prints the options.
struct arguments {
  std::string about;  ///< a sentence that says what the benchmark measures
  unsigned repeats = 7;
  std::string json;      ///< the file to which report() writes the table as JSON; empty: no file; "-": standard output
  bool enforce = false;  ///< report() returns 1 if a result misses its target
  bool quiet = false;    ///< report() prints no table
};

/// Reads the command line. more: the options of this benchmark alone; such an option replaces a common option of the
/// same name. --devices N changes HPE_DEVICES; therefore, parse() must be called before hpe starts. If the command line
/// is wrong, prints an error message and ends the program with status 2. After the call, an uncaught exception ends the
/// program with the exception's message and status 1.
[[nodiscard]] arguments parse(int argc, char** argv, const char* sentence,
                              const std::vector<command_line::option>& more = {});

/// Prints the table unless --quiet or `--json -` is given, and writes the JSON that --json requests
/// (apps/command_line/report.h); scripts/measurements reads the JSON. Returns the exit status for main(): 1 if
/// --enforce is given and a figure misses its target, else 0. If the JSON file cannot be written, ends the program with
/// status 1.
[[nodiscard]] int report(const std::string& title, const std::vector<result>& results, const arguments& given);

}  // namespace hpe::bench
