#pragma once

/// The facts about a kernel that the planner needs. hpe collects them once for each kernel.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/ptx/analysis/analysis.h"
#include "runtime/spread/model/launch.h"
#include "runtime/spread/model/loop_counts.h"

namespace hpe::spread {

[[nodiscard]] inline ptx::dimensions dimensions_of(const dimension& d) { return {d[0], d[1], d[2]}; }
/// Returns the place of a launch's first thread. Loop counters are read from `counters`.
[[nodiscard]] inline ptx::analysis::thread_place first_thread(const launch& l,
                                                              const std::vector<std::int64_t>& counters) {
  return {.grid = dimensions_of(l.grid),
          .block_size = dimensions_of(l.block),
          .block = {0, 0, 0},
          .thread = {0, 0, 0},
          .parameters = static_cast<const std::uint8_t*>(l.parameters),
          .counters = counters.data()};
}

class certain_accesses;

class kernel_model {
 public:
  /// Shares ownership of the program. `name` is the name of one of the program's kernels, as in the PTX. Throws
  /// HPE_ERROR_NOT_FOUND if the program has no such kernel.
  kernel_model(std::shared_ptr<const ptx::program> program, const std::string& name);
  ~kernel_model();
  kernel_model(const kernel_model&) = delete;
  kernel_model& operator=(const kernel_model&) = delete;

  /// A parameter that is a pointer to an array.
  struct pointer {
    std::uint32_t offset = 0;  // offset of the pointer in the parameters
    bool is_read = false;      // whether loads or atomic operations read the array
    bool is_written = false;   // whether stores or atomic operations write the array
    /// Whether a launch computes the same result if the parameter points to a copy of the array: the kernel only loads
    /// from the address, and neither stores nor compares the address.
    bool may_be_copied = false;
  };
  [[nodiscard]] const std::vector<pointer>& pointers() const { return pointers_; }
  /// Returns the index, in pointers(), of the pointer that is the base of an address; empty if the base is a variable
  /// or unknown.
  [[nodiscard]] std::optional<std::uint32_t> pointer_of(const ptx::analysis::address_form& form) const;

  /// A range of parameter bytes, other than a pointer, that influences addresses, conditions or numbers of iterations.
  /// Launches with the same pointers whose parameters differ only in other bytes access the same memory.
  struct bytes {
    std::uint32_t offset = 0, size = 0;
  };
  [[nodiscard]] const std::vector<bytes>& decisive_parameters() const { return decisive_; }
  /// Appends to a key for a table: the kernel, and the launch's shape, pointers and decisive parameters. The launch
  /// must have all parameters of the kernel.
  void append_key(std::string& key, const launch& l) const;
  /// Appends the decisive parameters that the launch has.
  void append_decisive(std::string& key, const launch& l) const;

  /// Returns whether an access uses a pointer that is neither a parameter nor the address of a variable: a pointer in
  /// memory, or a pointer that hpe cannot follow. Also true if hpe does not know the code of the kernel or of a
  /// function that the kernel calls (kernel_analysis::left_out).
  [[nodiscard]] bool finds_pointers() const { return finds_pointers_; }
  /// Returns whether a store or atomic operation may write to any memory, because the base of its address is unknown or
  /// hpe does not know the code.
  [[nodiscard]] bool writes_anywhere() const { return writes_anywhere_; }
  /// Returns the number, counted from 1, of the parameter at `offset` bytes.
  [[nodiscard]] std::size_t parameter_at(std::uint32_t offset) const;
  /// Returns why the kernel must run on one device; empty if it may be spread.
  [[nodiscard]] const std::string& obstacle() const { return obstacle_; }
  [[nodiscard]] const ptx::analysis::kernel_analysis& analysis() const { return analysis_; }
  [[nodiscard]] const loop_counts& counts() const { return counts_; }
  /// The accesses that certainly happen in a launch (certain_accesses.h).
  [[nodiscard]] const certain_accesses& certain() const { return *certain_; }

 private:
  void find_pointers();
  void find_copyable_pointers();
  void find_decisive_parameters();

  std::shared_ptr<const ptx::program> program_;
  ptx::analysis::kernel_analysis analysis_;
  loop_counts counts_;
  std::vector<pointer> pointers_;
  std::vector<bytes> decisive_;
  bool finds_pointers_ = false, writes_anywhere_ = false;
  std::string obstacle_;
  std::unique_ptr<const certain_accesses> certain_;
};

/// Computes ranges for some blocks of one launch, and the numbers that are the same for all its threads. The kernel and
/// the launch must outlive the object.
struct launch_ranges {
  launch_ranges(const kernel_model& k, const launch& l)
      : kernel(k),
        bounds(k.analysis(), dimensions_of(l.grid), dimensions_of(l.block),
               static_cast<const std::uint8_t*>(l.parameters)),
        numbers(k.analysis(), [](std::uint32_t) { return ptx::analysis::evaluator::number{}; }),
        counters(k.analysis().walk->flow().loops().size() + 1),
        place(first_thread(l, counters)) {
    numbers.go_to(place);
  }
  launch_ranges(const launch_ranges&) = delete;
  launch_ranges& operator=(const launch_ranges&) = delete;

  void go_to(const subgrid& blocks) { bounds.go_to(dimensions_of(blocks.first), dimensions_of(blocks.last())); }
  /// See loop_counts::most_of.
  [[nodiscard]] std::optional<std::int64_t> most_of(std::uint32_t loop) {
    return kernel.counts().most_of(loop, bounds, numbers, counters[loop]);
  }

  const kernel_model& kernel;
  ptx::analysis::bounds bounds;
  ptx::analysis::evaluator numbers;
  std::vector<std::int64_t> counters;
  ptx::analysis::thread_place place;
};

}  // namespace hpe::spread
