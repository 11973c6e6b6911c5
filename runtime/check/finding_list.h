#pragma once

/// Collects findings: each defect and place once, with the number of repeats. Not thread-safe.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/check/findings.h"

namespace hpe::check {

class finding_list {
 public:
  explicit finding_list(ignored_findings ignored) : ignored_(std::move(ignored)) {}

  /// Adds the finding that make() returns, or counts a repeat if the list has a finding with this key. Several reports
  /// of the same work `repeated_by` in sequence count once.
  void report(const std::string& key, const void* repeated_by, const std::function<finding()>& make);
  /// Returns the findings that are not ignored, in the order in which they were found.
  [[nodiscard]] std::vector<finding> all() const;
  /// Like all(), and forgets the findings.
  [[nodiscard]] std::vector<finding> take();

 private:
  struct known_finding {
    finding what;
    const void* last = nullptr;  // the last work that repeated it
    bool is_ignored = false;
  };

  ignored_findings ignored_;
  std::map<std::string, known_finding> known_;
  std::vector<std::string> keys_;  // in the order in which the findings were found
};

}  // namespace hpe::check
