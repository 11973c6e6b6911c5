#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hpe/hpe.hpp"
#include "kernels/gather.h"

namespace hpe::gather {

using way = kernels::gather_way;

/// Which element a scatter leaves in the table if several have the same index.
enum class duplicates {
  none,  ///< the caller guarantees that all indices differ; otherwise an element of 32 bytes may mix parts of several
         ///< values
  any,  ///< any one of these elements, never a mixture; the choice may differ from run to run. Elements of 32 bytes: as
        ///< `last`
  last  ///< the element with the last of the equal indices; needs 8 more bytes for each element of the table, and one
        ///< more pass over the indices
};

/// The treatment of indices that are not below the length of the table. Their elements are always skipped: a gather
/// keeps the old values, a scatter does not write.
enum class out_of_range {
  refuse,  ///< plan::finish throws, and the values of a gather are then undefined
  skip
};

/// Gather sets values[i] = table[indices[i]] for all i; scatter sets table[indices[i]] = values[i]. The arrays must not
/// overlap; their addresses are multiples of the element's size, or of 16 bytes if the element is larger.
struct problem {
  way direction = way::gather;
  std::size_t element = 8;  ///< bytes: 4, 8, 16 or 32
  std::size_t index = 4;    ///< bytes: 4 or 8; indices are unsigned
  std::uint64_t table = 0;  ///< number of elements of the table
  std::uint64_t count = 0;  ///< number of indices, and of values
  duplicates equal = duplicates::any;
  out_of_range beyond = out_of_range::refuse;

  /// Whether a scatter must write only the last of the elements with the same index. This includes `any` for elements
  /// of 32 bytes, which GPUs write in two parts.
  [[nodiscard]] bool keeps_order() const {
    return direction == way::scatter && (equal == duplicates::last || (equal == duplicates::any && element > 16));
  }
};

enum class method {
  single_pass,  ///< each index is read once and used at once
  multi_pass,   ///< all indices are read once for each chunk of the table; each pass uses the indices that are in its
                ///< chunk (He et al.)
  partitioned,  ///< indices, and values to scatter, are first moved to streams, one for each chunk
  staged        ///< multi-pass on one device over a table in other memory: a pass copies its chunk to the device and,
                ///< after a scatter, back
};
[[nodiscard]] const char* name_of(method how);

/// A method and the number of chunks: 1 for a single pass. If several devices partition, the chunks are their parts of
/// the table, and this number is not used.
struct choice {
  method how = method::single_pass;
  std::uint32_t chunks = 1;
};

/// Returns the largest number of chunks that the method `partitioned` can use on a device.
[[nodiscard]] std::uint32_t most_chunks(int device);

/// The division of an array into equal parts, one for each device, which end at granule boundaries; the last parts may
/// be shorter or empty.
class shares {
 public:
  shares(std::uint64_t count, std::vector<int> devices);

  [[nodiscard]] std::uint64_t begin(std::size_t part) const { return part * each_ < count_ ? part * each_ : count_; }
  [[nodiscard]] std::uint64_t size(std::size_t part) const { return begin(part + 1) - begin(part); }
  /// Returns the number of elements of a full part.
  [[nodiscard]] std::uint64_t each() const { return each_; }
  /// Returns the placement of the array if its elements have `bytes` bytes each.
  [[nodiscard]] placement where(std::size_t bytes) const;

 private:
  std::uint64_t count_, each_;
  std::vector<int> devices_;
};

/// A gather or scatter of one shape, on one device or several. A plan can run many times, because it owns the memory
/// that the method `partitioned` and `duplicates::last` need. Only one thread at a time may use a plan.
class plan {
 public:
  /// Uses all devices if `devices` is empty. Throws hpe::error for invalid sizes, too many chunks and too little
  /// memory. Also throws for the method `staged` on several devices, and for the method `partitioned` if equal indices
  /// must keep their order, because a partition does not preserve this order.
  plan(const problem& what, const choice& how, std::vector<int> devices = {});

  /// Returns the best placements of the arrays.
  [[nodiscard]] placement where_table() const { return table_.where(what_.element); }
  [[nodiscard]] placement where_indices() const { return stream_.where(what_.index); }
  [[nodiscard]] placement where_values() const { return stream_.where(what_.element); }

  /// Queues the gather or scatter and returns at once. The queued work runs after earlier work on the same arrays, like
  /// a launch. Throws hpe::error for invalid addresses.
  void run(void* table, const void* indices, void* values);

  /// Waits for the queued runs. Throws hpe::error (HPE_ERROR_INVALID_ARGUMENT), which names the first index out of
  /// range, unless the plan skips these indices. `indices` are the indices of the last run.
  void finish(const void* indices);

  /// Returns an estimate of the bytes that a plan for this problem allocates, on all devices together.
  [[nodiscard]] static double workspace(const problem& what, const choice& how, std::size_t devices);

 private:
  /// The arrays of one device for the method `partitioned`.
  struct streams {
    array<std::byte> indices, values;
    array<std::uint64_t> offsets;
    kernels::gather_partition partition;
  };
  /// The part of the arrays that belongs to a device.
  struct part {
    const std::byte* indices;
    std::byte* values;
    std::uint64_t first, count;
  };

  void run_passes(void* table, const void* indices, void* values);
  void run_partitioned(void* table, const void* indices, void* values);
  void mark(const void* indices);
  [[nodiscard]] part part_of(std::size_t device, const void* indices, void* values) const;
  [[nodiscard]] std::span<std::byte> all(const void* data, std::uint64_t count, std::size_t bytes) const;
  [[nodiscard]] hpeShape shape(std::size_t device, std::uint64_t count) const;
  /// Launches kernel gather_access on all devices that have streams.
  void access(const std::vector<kernels::gather_access_parameters>& of_devices, const std::vector<hpeAccess>& uses);

  const problem what_;
  const choice how_;
  const std::vector<int> devices_;
  const bool soft_;
  const shares table_, stream_;
  const kernels::gather_types types_;
  kernels::gather_chunks chunks_{};
  std::vector<std::uint32_t> units_;  ///< compute units of each device
  module module_;
  kernel<kernels::gather_access_parameters> access_;
  kernel<kernels::gather_mark_parameters> mark_;
  kernel<kernels::gather_partition> count_, offsets_;
  kernel<kernels::gather_move_parameters> move_;
  std::vector<array<kernels::gather_status>> status_;  ///< first index out of range of each device
  std::vector<streams> streams_;                       ///< streams of each device, for the method `partitioned`
  array<std::uint64_t> winners_;
  array<std::byte> stage_;  ///< method `staged`: a chunk of the table
};

/// Generates random indices on the devices that hold them: see kernels::gather_random_parameters.
class random_indices {
 public:
  explicit random_indices(std::vector<int> devices);
  /// Queues the kernels and returns at once. `index`: bytes of an index.
  void fill(void* indices, std::size_t index, const shares& parts, std::uint64_t table, std::uint64_t seed,
            std::uint64_t partitions = 0);

 private:
  std::vector<int> devices_;
  kernel<kernels::gather_random_parameters> random_;
};

/// Returns the path of libhpe-gather-kernels.so, in the folder of libhpe.so. Throws hpe::error if the file does not
/// exist.
[[nodiscard]] std::string own_module();

/// Returns `wished`, or all devices if it is empty. Throws hpe::error if a device is listed twice or does not exist.
[[nodiscard]] std::vector<int> all_unless(std::vector<int> wished);

}  // namespace hpe::gather
