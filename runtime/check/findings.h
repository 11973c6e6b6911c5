#pragma once

/// The findings of a run: one for each defect and place, with the number of repeats.
/// docs/check.md describes the kinds.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hpe::check {

/// One side of a finding: an access, an allocation, a free, or a call. Empty members are left out of reports.
struct finding_side {
  std::string how{};     // "read", "write", "atomic", "free", ...
  std::string what{};    // "kernel add(float*, int)", "cudaMemcpyAsync"
  int argument = 0;      // the kernel's argument that points to the allocation, from 1; 0: unknown
  std::string source{};  // the place in the kernel
  std::string place{};   // the place of the call in the program
  std::uint64_t stream = 0;
};

struct finding {
  std::string kind;
  std::string sentence;  // what is wrong, without places
  std::string missing;   // what would have ordered the accesses, or what the program should do
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;  // in the allocation
  std::optional<finding_side> allocation;
  std::uint64_t allocation_bytes = 0;
  std::optional<finding_side> now, earlier;
  std::uint64_t count = 1;

  /// Whether the kind equals `kind` or `kind` is "*", and `text` occurs in the sentence or in a place.
  [[nodiscard]] bool matches(std::string_view kind, std::string_view text) const;
};

/// Findings that the user does not want to see.
class ignored_findings {
 public:
  ignored_findings() = default;
  /// Reads a text with a line `KIND TEXT` for each rule; # begins a comment. Throws HPE_ERROR_INVALID_ARGUMENT for a
  /// line that consists of one word, or begins with an unknown kind.
  explicit ignored_findings(std::string_view text);
  [[nodiscard]] bool contains(const finding& what) const;

 private:
  struct rule {
    std::string kind, text;
  };
  std::vector<rule> rules_;
};

/// Collects findings: each defect and place once, with the number of repeats. Not thread-safe.
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

struct finding_kind {
  std::string_view name;
  std::string_view title;
  std::string_view help;  // what the program should do
  bool is_error = true;   // otherwise the program's results are right nevertheless
};
[[nodiscard]] const std::vector<finding_kind>& kinds_of_findings();

/// Several lines, which end with a newline.
[[nodiscard]] std::string text_of(const finding& what);

}  // namespace hpe::check
