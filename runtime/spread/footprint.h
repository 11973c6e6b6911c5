#pragma once

/// The memory that a part of a launch can access, and the parts in which a launch can run one after the other.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/function_ref.h"
#include "runtime/spread/decision.h"
#include "runtime/spread/kernel_model.h"

namespace hpe::spread {

/// The bytes first <= offset < last of an array.
struct used_bytes {
  std::uint32_t pointer = 0;  // index into kernel_model::pointers
  std::uint64_t first = 0, last = 0;
  bool is_written = false;
};

/// A part of a launch: by device, the blocks that it runs. All devices run at the same time; a device without blocks
/// runs nothing.
using part_of_devices = std::vector<block_range>;

/// The footprint of one launch: an upper bound of the bytes of the arrays that blocks access, unless the program's
/// kernel leaves an array. (traffic, in contrast, estimates the bytes that blocks do access.) Not thread-safe; several
/// objects may use one model.
class footprint {
 public:
  /// arrays: by pointer, the allocation; null for memory that does not matter. All arguments must outlive the object,
  /// and so must the launch's parameters, which must be those of the whole kernel.
  footprint(const kernel_model& kernel, const launch& l, std::span<const allocation* const> arrays);

  /// Why the footprint is unknown: a clause that begins with "it". If it is empty, of() may be called.
  [[nodiscard]] const std::string& obstacle() const { return obstacle_; }
  /// Returns whether of() has found an access that is entirely outside of its pointer's array. It may be an access to
  /// another array, which of() does not report.
  [[nodiscard]] bool leaves_arrays() const { return leaves_arrays_; }
  /// Returns at most one range for each pointer, in ascending order of pointers. The range is the whole array if the
  /// analysis finds no bounds.
  [[nodiscard]] std::vector<used_bytes> of(const block_range& blocks);
  /// Returns the ranges of all devices' blocks.
  [[nodiscard]] std::vector<used_bytes> of(const part_of_devices& part);

 private:
  [[nodiscard]] std::string find_obstacle() const;
  void add(const ptx::analysis::access& a, const ptx::analysis::address_form& f);

  const kernel_model& kernel_;
  const std::span<const allocation* const> arrays_;
  ptx::analysis::bounds bounds_;
  ptx::analysis::evaluator numbers_;
  std::vector<std::int64_t> counters_;
  std::vector<std::optional<std::int64_t>> limits_;  // by loop that is repeated equally often in all threads
  std::vector<bool> limits_known_;
  ptx::analysis::thread_place place_;
  std::vector<std::optional<used_bytes>> found_;  // by pointer
  std::string obstacle_;
  bool leaves_arrays_ = false;
};

/// The parts in which a launch runs, one after the other on the same devices.
struct cut_in_time {
  std::vector<part_of_devices> parts;  // in the order in which they run; one part: the whole grid fits
  std::string obstacle;                // a clause that begins with "it"; if it is empty, there are parts
};

/// Cuts the grid into parts that run one after the other and whose memory fits. `whole`: what devices run without this
/// cut (whole_grid or cut_evenly). load(bytes): the fraction of the available memory that these bytes take. If
/// possible, parts are so small that the memory of three parts fits. `obstacle`: why the grid must not be cut, or
/// empty.
[[nodiscard]] cut_in_time cut_for_room(footprint& memory, const kernel_model& kernel, const part_of_devices& whole,
                                       const std::string& obstacle,
                                       function_ref<double(const std::vector<used_bytes>&)> load);

}  // namespace hpe::spread
