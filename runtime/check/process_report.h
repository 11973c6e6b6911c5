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

/// Adds a checker to the report, which an exit handler writes after the program's own exit handlers. The object must
/// exist until the process ends.
void add_to_report(report_source& from);

/// Returns the findings of the checkers, so that another library of the process can add them to its report. After this
/// call, the exit handler writes no report.
[[nodiscard]] std::vector<finding> take_reported();

}  // namespace hpe::check
