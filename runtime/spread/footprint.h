#pragma once

/// The memory that a part of a launch can touch, and the parts in which a launch can run one after the other.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/function_ref.h"
#include "runtime/spread/decision.h"
#include "runtime/spread/kernel_model.h"

namespace hpe::spread {

/// Bytes first <= offset < last of an array.
struct used_bytes {
  std::uint32_t pointer = 0;  // of the kernel (kernel_model::pointers)
  std::uint64_t first = 0, last = 0;
  bool is_written = false;
};

/// A part of a launch: the blocks that each device runs at the same time. Without blocks, a device runs none.
using part_of_devices = std::vector<block_range>;

/// For one launch. No block of a part touches other bytes of the arrays, unless the program's kernel leaves an array:
/// the opposite of traffic, which estimates the bytes that blocks do touch. Not thread-safe; several objects may use
/// one model.
class footprint {
 public:
  /// arrays: of each pointer; null for memory that does not matter. All must outlive the object, and so must the
  /// launch's parameters, of which there are as many as the kernel has.
  footprint(const kernel_model& kernel, const launch& l, std::span<const allocation* const> arrays);

  /// Why nothing is known: a reason that begins with "it". Empty: of() may be called.
  [[nodiscard]] const std::string& obstacle() const { return obstacle_; }
  /// Whether of() has found an access that is wholly outside of its pointer's array. The access may be one to another
  /// array, which of() does not report.
  [[nodiscard]] bool leaves_arrays() const { return leaves_arrays_; }
  /// At most one range for each pointer, ascending. The whole array where the analysis tells no bounds.
  [[nodiscard]] std::vector<used_bytes> of(const block_range& blocks);
  /// The ranges of all devices' blocks.
  [[nodiscard]] std::vector<used_bytes> of(const part_of_devices& part);

 private:
  [[nodiscard]] std::string find_obstacle() const;
  void add(const ptx::analysis::access& a, const ptx::analysis::address_form& f);

  const kernel_model& kernel_;
  const std::span<const allocation* const> arrays_;
  ptx::analysis::bounds bounds_;
  ptx::analysis::evaluator numbers_;
  std::vector<std::int64_t> counters_;
  std::vector<std::optional<std::int64_t>> limits_;  // of loops that run equally often in all threads
  std::vector<bool> limits_known_;
  ptx::analysis::thread_place place_;
  std::vector<std::optional<used_bytes>> found_;  // of each pointer
  std::string obstacle_;
  bool leaves_arrays_ = false;
};

/// The parts of a launch that run one after the other on the same devices.
struct cut_in_time {
  std::vector<part_of_devices> parts;  // in the order in which they run; one: the whole grid fits
  std::string obstacle;                // a reason that begins with "it", or empty; then there are parts
};

/// Cuts the parts of a grid that devices run (whole_grid or cut_evenly) into parts whose memory fits. load(bytes): how
/// much of the room for it this memory takes; 1: all. Parts are made so small that the memory of three fits, if
/// possible. `obstacle`: why the grid must not be cut, or empty.
[[nodiscard]] cut_in_time cut_for_room(footprint& memory, const kernel_model& kernel, const part_of_devices& whole,
                                       const std::string& obstacle,
                                       function_ref<double(const std::vector<used_bytes>&)> load);

}  // namespace hpe::spread
