#pragma once

/// The one report of a process: several checkers can check parts of one program, such as its CUDA calls and its calls
/// of hpe's own interface.

#include <string_view>
#include <vector>

#include "runtime/check/reports.h"

namespace hpe::check {

/// A checker that contributes to the report.
class report_source {
 public:
  report_source() = default;
  report_source(const report_source&) = delete;
  report_source& operator=(const report_source&) = delete;
  virtual ~report_source() = default;

  /// Returns how the report is written; null if nothing has been checked. All checkers of a process have the same
  /// options.
  [[nodiscard]] virtual const findings_report* form() = 0;
  /// Returns the findings, when the process ends.
  [[nodiscard]] virtual std::vector<finding> finish() = 0;
  /// Returns a line for the end of the text, such as the limits of this check; empty: none.
  [[nodiscard]] virtual std::string_view note() const { return {}; }
};

/// Adds a checker to the report. The object must exist until the process ends. is_first: whether its findings stand
/// before those of the checkers that were added earlier.
void add_to_report(report_source& from, bool is_first = false);

/// Whether end_report() would write a report.
[[nodiscard]] bool has_report() noexcept;
/// Writes the report, unless an earlier call has written it. To be called when the process is about to end with
/// `status`; an exit handler, which runs after the program's own exit handlers, calls this too. Returns the status with
/// which the process is to end instead.
[[nodiscard]] int end_report(int status) noexcept;

}  // namespace hpe::check
