#pragma once

/// What commands and benchmarks measured, as JSON: an object that names program, machine, commit and time, so that the
/// figures can be told apart later. docs/schemas/report.json describes it.

#include <cstdint>
#include <string>
#include <vector>

namespace hpe::command_line {

/// A line of a table of figures. bar: what is asked for, as text; empty if nothing is. spread: of the repeats,
/// likewise.
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
  std::vector<std::string> devices = {};  ///< their names; empty: not told
  std::vector<figure> figures;
};

/// Writes it as write_text does.
void write_json(const report& r, const std::string& file);

/// Writes a text to the file, or to standard output for "-"; nothing for an empty name. Throws std::runtime_error.
void write_text(const std::string& text, const std::string& file);

/// The answer of a command: prints the text unless `quiet` or the JSON goes to standard output, and writes the JSON.
void answer(const report& r, const std::string& text, const std::string& json, bool quiet);

/// The names of the first `count` devices.
[[nodiscard]] std::vector<std::string> names_of_devices(int count);

/// The median; values is not empty.
[[nodiscard]] double median(std::vector<double> values);

/// The processor's name and the number of cores.
[[nodiscard]] std::string machine();

/// The commit that was built, with "+" behind it where files differed from it.
[[nodiscard]] std::string commit();

/// The time in UTC, as in 2026-11-23T04:05:06Z.
[[nodiscard]] std::string time_now();

}  // namespace hpe::command_line
