#pragma once

/// Computes the memory that a part of a launch can access, and cuts a launch into parts that run one after the other.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/box.h"
#include "runtime/base/function_ref.h"
#include "runtime/spread/grid_cut.h"
#include "runtime/spread/model/kernel_model.h"

namespace hpe::spread {

/// The bytes first <= offset < last of an array.
struct used_bytes {
  std::uint32_t pointer = 0;  // index into kernel_model::pointers
  std::uint64_t first = 0, last = 0;
  bool is_written = false;
  bool is_overwritten = false;  // whether the blocks write each of the bytes, and read none of them
  /// The rows that the blocks write, if they write most but not all bytes of the range, and read none of them. The
  /// other bytes of the array keep their values. The offset is from the begin of the array.
  std::optional<placed_box> rows{};
};

/// A part of a launch: by device, the blocks that the device runs. All devices run at the same time. A range may have
/// no blocks.
using part_of_devices = std::vector<subgrid>;

/// The footprint of one launch: an upper bound of the bytes of the arrays that blocks may access. The bound is not
/// valid if the kernel leaves an array through the array's pointer. (traffic.h estimates the bytes that blocks actually
/// access.) Not thread-safe; several objects may use one model.
class footprint {
 public:
  /// `arrays`: by pointer, the allocation; null for memory that the footprint should ignore. All arguments and the
  /// launch's parameters must outlive the object. The launch must have all parameters of the kernel.
  footprint(const kernel_model& kernel, const launch& l, std::span<const kernel_array* const> arrays);

  /// Returns why the footprint is unknown, as a clause that begins with "it"; empty if the footprint is known. Callers
  /// may call of() only if the result is empty.
  [[nodiscard]] const std::string& obstacle() const { return obstacle_; }
  /// Returns whether of() has found an access that is entirely outside of its pointer's array. Such an access may touch
  /// another array, and the result of of() does not include it.
  [[nodiscard]] bool leaves_arrays() const { return leaves_arrays_; }
  /// Returns the bytes that `blocks` may access: at most one range for each pointer, in ascending order of pointers.
  /// The range is the whole array if the analysis finds no bounds.
  [[nodiscard]] std::vector<used_bytes> of(const subgrid& blocks);
  /// Returns the bytes that the blocks of all devices may access. Like of(), does not find out which bytes the blocks
  /// overwrite.
  [[nodiscard]] std::vector<used_bytes> of(const part_of_devices& part);
  /// Like of(), but sets is_overwritten and rows where hpe can prove them (certain_accesses).
  [[nodiscard]] std::vector<used_bytes> with_overwritten(const part_of_devices& part);

 private:
  [[nodiscard]] std::string find_obstacle() const;
  void add(const ptx::analysis::access& a, const ptx::analysis::address_form& f);
  [[nodiscard]] bool is_read(const kernel_array& array) const;

  const kernel_model& kernel_;
  const launch& launch_;
  const std::span<const kernel_array* const> arrays_;
  launch_ranges ranges_;
  std::vector<std::optional<std::int64_t>>
      limits_;  // by loop; kept only for loops that all threads repeat equally often
  std::vector<bool> limits_known_;
  std::vector<std::optional<used_bytes>> found_;  // by pointer
  std::string obstacle_;
  bool leaves_arrays_ = false;
};

/// The parts of a launch that run one after the other on the same devices.
struct cut_in_time {
  std::vector<part_of_devices> parts;  // in the order in which they run; a single part means that the whole grid fits
  std::string obstacle;  // why the launch cannot be cut, as a clause that begins with "it"; empty if there are parts
};

/// Cuts the grid into parts that run one after the other, so that the memory of each part fits. If possible, each
/// part needs at most a sixth of the available memory. `whole`: the blocks of each device without this cut (whole_grid
/// or cut_evenly). load(bytes): the fraction of the available memory that these bytes need. `obstacle`: why the grid
/// must not be cut; empty if it may be cut.
[[nodiscard]] cut_in_time cut_for_room(footprint& memory, const kernel_model& kernel, const part_of_devices& whole,
                                       const std::string& obstacle,
                                       function_ref<double(const std::vector<used_bytes>&)> load);

}  // namespace hpe::spread
