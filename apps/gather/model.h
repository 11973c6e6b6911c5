#pragma once

/// The time of gathers and scatters on one device, after B. He et al., "Efficient Gather and Scatter Operations on
/// Graphics Processors" (SC 2007): sequential parts at the sequential bandwidth, and random accesses that hit or miss
/// the levels of the memory. The paper has one cache; this model has as many levels as the fit finds, each with its own
/// N (lines) and time of a miss. The functions have no state; any thread may call them.

#include <functional>
#include <string>
#include <vector>

#include "apps/gather/gather_plan.h"

namespace hpe::gather {

/// Returns the expected number of distinct blocks, out of `blocks`, that uniform random accesses touch: the paper's E
/// (and its D, for the accesses of one warp).
[[nodiscard]] double distinct_blocks(double accesses, double blocks);

/// Returns the fraction of n uniform accesses to k blocks that miss a cache of N lines, which is empty at first (the
/// paper's case I).
[[nodiscard]] double uniform_misses(double accesses, double blocks, double lines);

/// Returns the same fraction for a cache that evicts each line before its next use if there are more than N blocks.
[[nodiscard]] double thrashing_misses(double accesses, double blocks, double lines);

/// Returns the number of transactions for each access if `together` simultaneous accesses go to `partitions` sequences
/// of elements of `element` bytes in blocks of `line` bytes (the paper's case II). The sum in the paper lacks the
/// factor j; this function includes it.
[[nodiscard]] double partition_misses(double partitions, double together, double element, double line);

/// A level of the memory: an access that misses it takes `seconds` longer.
struct level {
  double capacity;  ///< case I: the level's size in bytes; case II: the number of partitions whose current lines the
                    ///< level holds
  double seconds;
  bool thrashes = false;  ///< case I: an overfull level keeps no lines, whereas the paper's cache keeps N
};

/// Returns the fraction of a run's accesses that miss a level. The run accesses a table of `bytes` bytes, divided into
/// blocks of `line` bytes, in `passes` passes, each of which accesses a different chunk of the table. The run follows
/// an identical run. If the table fits into the level, no access misses, because the previous run has loaded the table.
/// A single pass over a larger table finds N of the table's k blocks in the level. With several passes, each pass finds
/// none of its blocks there, as in the paper's case I.
[[nodiscard]] double run_misses(const level& l, double accesses, double bytes, double line, double passes);

/// The times of one direction, gather or scatter: seconds for one access while the whole device works.
struct access_times {
  double hit = 0;             ///< time of a uniform access that hits all levels
  std::vector<level> levels;  ///< case I
  double first_use = 1;       ///< in a pass over a chunk that fits into a level, the first access to a block takes this
                              ///< fraction of the time of a miss
  double transaction = 0;     ///< case II: time of a transaction
  std::vector<level> partitioned;  ///< case II
  double partition = 0;  ///< time to partition and to reverse the partition, for each byte of an index and an element
};

/// The time for each byte of arrays that are read or written once in order and have `bytes` bytes in all.
struct sequential_time {
  double bytes, seconds;
};

/// The parameters of one kind of device, fitted by fit() (apps/gather/fit.h).
struct parameters {
  std::string device;
  bool soft = true;
  double line = 64;     ///< bytes of a memory block: l
  double together = 1;  ///< accesses made at once: w, the threads of a warp
  double most_chunks = 1024;
  double launch = 0;  ///< seconds of a launch while the device has no other work; from a run on a few elements
  double pass = 0;    ///< seconds for each index in a pass that accesses no elements
  std::vector<sequential_time> sequential;  ///< in ascending order of bytes
  access_times gather, scatter;

  [[nodiscard]] const access_times& of(way direction) const { return direction == way::gather ? gather : scatter; }
  /// Returns the paper's B_seq in bytes per second: the mean of the measured bandwidths, weighted by the bytes of the
  /// measurements.
  [[nodiscard]] double mean_sequential() const;
  /// Seconds for each byte of arrays with `bytes` bytes in all.
  [[nodiscard]] double sequential_at(double bytes) const;
};

/// A predicted time as the sum of its parts, in seconds.
struct prediction {
  choice how;
  double launch = 0, sequential = 0, random = 0, partition = 0;
  [[nodiscard]] double total() const { return launch + sequential + random + partition; }
};

/// Predicts a run on one device. If `partitions` is 0, the indices are uniformly random. Otherwise each index falls
/// into a random one of `partitions` equal partitions of the table, and the indices of one partition ascend.
[[nodiscard]] prediction predict(const parameters& machine, const problem& what, const choice& how,
                                 double partitions = 0);

/// Predicts the seconds of a run on one device with the indices 0, 1, 2, ...
[[nodiscard]] double predict_sequential(const parameters& machine, const problem& what);

/// Returns predictions for a single pass, for several passes and, if they are possible, for partitions, the fastest
/// first. A single pass comes first unless another choice is predicted to take less than 0.98 of the time of a single
/// pass.
[[nodiscard]] std::vector<prediction> choices(const parameters& machine, const problem& what);

/// Non-negative least squares: returns the numbers x[j] >= 0 that minimise the sum of the squared errors of `values[i]
/// ~ sum over j of columns[j][i] x[j]`, each error divided by units[i].
[[nodiscard]] std::vector<double> fit_not_negative(const std::vector<std::vector<double>>& columns,
                                                   const std::vector<double>& values, const std::vector<double>& units);

/// Returns the parameters and the predictions as text, for --explain.
[[nodiscard]] std::string explain(const parameters& machine, const problem& what);

[[nodiscard]] std::string as_json(const parameters& machine);
/// Reads a text that as_json() wrote. Throws bad_input, which names the file, for any other text.
[[nodiscard]] parameters parameters_of_json(const std::string& text, const std::string& file);

}  // namespace hpe::gather
