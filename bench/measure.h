#pragma once

/// What the benchmarks share: timing by medians over repeats, and a table of results with the bar each has to reach.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "apps/command_line/report.h"
#include "apps/command_line/values.h"

namespace hpe::bench {

using command_line::to_flag;
using command_line::to_text;
using command_line::to_whole;
using command_line::to_word;

/// Seconds on a monotonic clock.
[[nodiscard]] double now();

/// Runs prepare and then body, `repeats` times after one warm-up, and returns the median of body's seconds.
[[nodiscard]] double median_seconds(unsigned repeats, const std::function<void()>& prepare,
                                    const std::function<void()>& body);

/// Likewise, with the fastest and the slowest repeat.
struct timing {
  double median;
  double fastest;
  double slowest;
  double processor = 0;  ///< median of processor time (bench/processor_time.h)
};
[[nodiscard]] timing timed(unsigned repeats, const std::function<void()>& prepare, const std::function<void()>& body);

/// Likewise for two bodies in turn (A B A B ...), so that a drifting machine meets both alike.
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
[[nodiscard]] pair_of_medians paired_medians(unsigned repeats, const std::function<void()>& prepare_first,
                                             const std::function<void()>& first,
                                             const std::function<void()>& prepare_second,
                                             const std::function<void()>& second);

/// As text, for titles: how many threads wanted to run in the last minute, of all programs.
[[nodiscard]] std::string load_of_machine();

/// A line of the result table.
using result = command_line::figure;

/// What every benchmark's command line understands. --describe prints one sentence and ends the program; --help
/// likewise.
struct arguments {
  std::string about;  ///< the sentence that says what the benchmark measures
  unsigned repeats = 7;
  std::string json;      ///< a file for the table as JSON; empty: none; "-": standard output
  bool enforce = false;  ///< a bar that is missed is a failure
  bool quiet = false;    ///< no table
};

/// Reads the command line; `more` are the options of this benchmark alone. Ends the program with status 2 and a
/// sentence if the command line cannot be meant, and from then on with status 1 and a sentence if an exception is not
/// caught.
[[nodiscard]] arguments parse(int argc, char** argv, const char* sentence,
                              const std::vector<command_line::option>& more = {});

/// Prints the table and writes its JSON (apps/command_line/report.h), which scripts/measurements reads. Gives the
/// program's exit status: 1 if bars are enforced and one was missed, else 0. A JSON file that cannot be written ends
/// the program with status 1.
[[nodiscard]] int report(const std::string& title, const std::vector<result>& results, const arguments& given);

}  // namespace hpe::bench
