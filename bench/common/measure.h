#pragma once

/// Common parts of the benchmarks: medians of repeated timings, and a table of results with the targets they must
/// reach.

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

/// Returns the seconds of a monotonic clock.
[[nodiscard]] double now();

/// Runs prepare and body once to warm up, then `repeats` times. Returns the median of the seconds that body takes.
[[nodiscard]] double median_seconds(unsigned repeats, const std::function<void()>& prepare,
                                    const std::function<void()>& body);

/// The result of timed(), which measures as median_seconds() does: the seconds of the median, the fastest and the
/// slowest repeat.
struct timing {
  double median;
  double fastest;
  double slowest;
  double processor = 0;  ///< median of processor time (bench/common/processor_time.h)
};
[[nodiscard]] timing timed(unsigned repeats, const std::function<void()>& prepare, const std::function<void()>& body);

/// Results of timing two bodies in turn (A B A B ...), so that a drift of the machine's speed affects both equally.
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

/// Returns the load average of the last minute (the mean number of runnable threads of all programs) as text for
/// titles.
[[nodiscard]] std::string load_of_machine();

/// A line of the result table.
using result = command_line::figure;

/// The options of every benchmark. --describe and --help print the sentence about the benchmark, --help also the
/// options, and end the program.
struct arguments {
  std::string about;  ///< a sentence about what the benchmark measures
  unsigned repeats = 7;
  std::string json;      ///< the file for the table as JSON; empty: no file; "-": standard output
  bool enforce = false;  ///< report() returns 1 if a result misses its target
  bool quiet = false;    ///< no table
};

/// Reads the command line; `more` are the options of this benchmark alone; an option with the name of a common option
/// replaces it. --devices N changes HPE_DEVICES, so hpe must not have started. If the command line is wrong, ends the
/// program with an error message and status 2. From then on, an uncaught exception ends the program with its message
/// and status 1.
[[nodiscard]] arguments parse(int argc, char** argv, const char* sentence,
                              const std::vector<command_line::option>& more = {});

/// Prints the table and writes its JSON (apps/command_line/report.h), which scripts/measurements reads. Returns the
/// program's exit status: 1 if targets are enforced and one was missed, else 0. If the JSON file cannot be written,
/// ends the program with status 1.
[[nodiscard]] int report(const std::string& title, const std::vector<result>& results, const arguments& given);

}  // namespace hpe::bench
