#pragma once

/// Compares the bytes that launches of hpe's own interface access with the accesses that the launches declare. Knows
/// nothing about devices. Thread-safe.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/check/findings.h"
#include "runtime/check/operation.h"

namespace hpe::check {

/// A range that a launch declares.
struct declared_range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool reads = false;
  bool writes = false;
};

/// An allocation of the program; bytes 0: none.
struct memory_extent {
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
};

class declared_accesses {
 public:
  /// `find` returns the allocation that contains an address. `is_in_space` returns whether an address can be memory
  /// that the program has allocated.
  declared_accesses(ignored_findings ignored, std::function<memory_extent(std::uint64_t address)> find,
                    std::function<bool(std::uint64_t address)> is_in_space);

  /// Remembers where the program has allocated memory, for reports.
  void allocated(std::uint64_t base, std::shared_ptr<const call_place> place);

  /// Adds the findings of a launch. The recorded reads are those of bytes that the launch has not written before.
  void compare(const operation_ptr& launch, std::span<const declared_range> declared,
               std::span<const access_range> recorded);
  /// Adds races within a launch. Reports one for each kernel, call and array.
  void add(const operation_ptr& launch, std::span<const launch_race> races);

  /// Returns the findings so far, and forgets them.
  [[nodiscard]] std::vector<finding> take();

 private:
  void add(const operation_ptr& launch, std::span<const declared_range> declared, const access_range& part)
      HPE_REQUIRES(mutex_);
  void describe(finding& to, const memory_extent& in) const HPE_REQUIRES(mutex_);

  const std::function<memory_extent(std::uint64_t)> find_;
  const std::function<bool(std::uint64_t)> is_in_space_;
  mutable mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<const call_place>> places_ HPE_GUARDED_BY(mutex_);  // by base
  finding_list findings_ HPE_GUARDED_BY(mutex_);
  operation_ptr last_ HPE_GUARDED_BY(mutex_);  // kept, so that the next launch has another address
};

}  // namespace hpe::check
