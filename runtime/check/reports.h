#pragma once

/// The report of `hpe run --check`: on standard error, and in files for other programs.

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/check/findings.h"

namespace hpe {
struct options;
}

namespace hpe::check {

/// The format of docs/check.md. `rank`: the rank of this process in its MPI job; null: none.
[[nodiscard]] std::string json_of(const std::vector<finding>& all, const char* rank = nullptr);

/// SARIF 2.1.0. Places in the folder `root` become relative to it.
[[nodiscard]] std::string sarif_of(const std::vector<finding>& all, const std::string& root);

/// Writes the report in the forms that the options select.
class findings_report {
 public:
  /// Throws HPE_ERROR_INVALID_ARGUMENT for a wrong file of HPE_CHECK_IGNORE, or a wrong HPE_CHECK_STATUS.
  explicit findings_report(const options& chosen);

  [[nodiscard]] const ignored_findings& ignored() const noexcept { return ignored_; }
  /// Whether this process has made the object, and not one of which it is a fork.
  [[nodiscard]] bool is_of_this_process() const;
  /// To be called when the process is about to end with `status`. Writes the findings, and the notes as last lines of
  /// the text. In an MPI job, the report names the rank. Returns the status with which the process is to end: if there
  /// are findings, the status of HPE_CHECK_STATUS instead of 0.
  [[nodiscard]] int end_process(int status, const std::vector<finding>& all,
                                std::span<const std::string_view> notes) const;

 private:
  void write(const std::vector<finding>& all, std::span<const std::string_view> notes) const;

  ignored_findings ignored_;
  std::string json_, sarif_;
  std::uint64_t since_;  // when the run began, in nanoseconds since 1970
  int status_;
  ::pid_t process_;
};

}  // namespace hpe::check
