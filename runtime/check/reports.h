#pragma once

/// The report of `hpe run --check`: on standard error, and in files for other programs.

#include <sys/types.h>

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

/// Writes the report as the options want it.
class findings_report {
 public:
  /// Throws HPE_ERROR_INVALID_ARGUMENT for a wrong file of HPE_CHECK_IGNORE, or a wrong HPE_CHECK_STATUS.
  explicit findings_report(const options& chosen);

  [[nodiscard]] const ignored_findings& ignored() const noexcept { return ignored_; }
  /// Whether this process is the one that made the object, and not a child made by fork.
  [[nodiscard]] bool is_of_this_process() const noexcept;
  /// In an MPI job, the report names the rank.
  /// `note`: a last line of the text; empty: none.
  void write(const std::vector<finding>& all, std::string_view note = {}) const;
  /// Returns the exit status of a program that would end with `status`.
  [[nodiscard]] int status(const std::vector<finding>& all, int status) const noexcept {
    return all.empty() || status != 0 ? status : status_;
  }

 private:
  ignored_findings ignored_;
  std::string json_, sarif_;
  int status_;
  ::pid_t process_;
};

}  // namespace hpe::check
