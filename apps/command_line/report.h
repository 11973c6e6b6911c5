#pragma once

/// Measurements of commands and benchmarks as JSON: an object that names program, machine, commit and time, so that
/// figures of different runs can be distinguished. docs/schemas/report.json describes it.

#include <cstdint>
#include <string>
#include <vector>

namespace hpe::command_line {

/// A line of a table of figures. bar: the required value, as text; empty if there is none. spread: the range of the
/// repeats, as text or empty.
struct figure {
  std::string what;
  double value;
  std::string unit;
  std::string bar = {};
  bool reached = true;
  std::string spread = {};
};

struct report {
  std::string program;
  std::string about;  ///< what the program does, in a sentence
  std::string title;
  std::int64_t repeats = 1;
  std::vector<std::string> devices = {};  ///< names of the devices; empty: not reported
  std::vector<figure> figures;
};

/// Writes the report with write_text().
void write_json(const report& r, const std::string& file);

/// Writes a text to the file, or to standard output for "-"; nothing for an empty name. Throws std::runtime_error.
void write_text(const std::string& text, const std::string& file);

/// The output of a command: prints the text unless `quiet` is set or the JSON goes to standard output, and writes the
/// JSON.
void answer(const report& r, const std::string& text, const std::string& json, bool quiet);

/// The names of the first `count` devices.
[[nodiscard]] std::vector<std::string> names_of_devices(int count);

/// The median; values is not empty.
[[nodiscard]] double median(std::vector<double> values);

/// The processor's name and the number of cores.
[[nodiscard]] std::string machine();

/// The commit that was built; a "+" follows if files differed from it.
[[nodiscard]] std::string commit();

/// The time in UTC, as in 2026-11-23T04:05:06Z.
[[nodiscard]] std::string time_now();

}  // namespace hpe::command_line
