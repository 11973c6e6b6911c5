#pragma once

/// Measurements of commands and benchmarks as JSON: an object that names the program, machine, commit and time, so that
/// figures of different runs can be distinguished. docs/schemas/report.json describes it.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace hpe::command_line {

/// A line of a table of figures. bar: the required value, as text; empty if no value is required. spread: the range
/// over the repeats, as text; may be empty.
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
  std::string about;  ///< a description of the program, as a sentence
  std::string title;
  std::int64_t repeats = 1;
  std::vector<std::string> devices = {};  ///< names of the devices; empty: not reported
  std::vector<figure> figures;
};

/// Writes the report with write_text().
void write_json(const report& r, const std::string& file);

/// Writes a text to a file, or to standard output if `file` is "-"; does nothing if `file` is empty. Throws
/// std::runtime_error if the file cannot be written.
void write_text(const std::string& text, const std::string& file);

/// Writes a text to a cache file, and creates the file's folder. If that fails, the function reports no error, and an
/// earlier file of that name keeps its contents.
void keep_in_cache(const std::string& file, const std::string& text) noexcept;

/// Converts JSON to text. Bytes that are not UTF-8, for example in a path, become U+FFFD. indent: the number of spaces
/// for each level; -1: one line.
[[nodiscard]] std::string text_of(const nlohmann::json& object, int indent);
[[nodiscard]] std::string text_of(const nlohmann::ordered_json& object, int indent);

/// Writes a command's output: prints the text, unless `quiet` is set or the JSON goes to standard output, and writes
/// the JSON.
void answer(const report& r, const std::string& text, const std::string& json, bool quiet);

/// Returns the names of the first `count` devices.
[[nodiscard]] std::vector<std::string> names_of_devices(int count);

/// Returns the median of `values`, which must not be empty; for an even number of values, the larger of the two middle
/// ones.
[[nodiscard]] double median(std::vector<double> values);

/// Returns the processor's name and the number of logical cores.
[[nodiscard]] std::string machine();

/// Returns the commit from which this program was built, followed by "+" if its files differed from the commit.
[[nodiscard]] std::string commit();

/// Returns the time in UTC, as in 2026-11-23T04:05:06Z.
[[nodiscard]] std::string time_now();

}  // namespace hpe::command_line
