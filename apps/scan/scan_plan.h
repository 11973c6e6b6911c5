#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/scan/choice/choice.h"
#include "apps/scan/scan_operation.h"
#include "apps/scan/team/team_scan.h"

namespace hpe::scan {

/// The options of a plan. The plan itself chooses the values that are left at these defaults.
struct wishes {
  algorithm how = algorithm::automatic;
  split spread = split::automatic;
  std::vector<int> devices;      ///< empty: all
  std::uint64_t iterations = 0;  ///< K of three stages, a power of two; 0: the plan searches for it
  std::string cache;             ///< the file that keeps K between runs; empty: none. See default_cache().
};

/// Returns the default file for K: HPE_SCAN_CACHE, or hpe/scan below XDG_CACHE_HOME or ~/.cache; empty if none of these
/// is set.
[[nodiscard]] std::string default_cache();

/// Batched scans of one kind: G problems of N elements, one after another; see kernels/scan.h. A plan can run many
/// times, because it owns the memory that its launches need. Only one thread at a time may use a plan.
class plan {
 public:
  /// Throws hpe::error if there are no kernels for the operation, the batch exceeds 2^63 - 1 bytes, or an option is
  /// invalid.
  plan(const operation& what, const batch& work, wishes wished = {});
  plan(const plan&) = delete;  // the teams refer to members
  plan& operator=(const plan&) = delete;

  /// Queues the scan and returns. Like a launch, the scan waits for earlier work on the same arrays. input and output
  /// are arrays of N G elements, which are the same or do not overlap; both are aligned to the size of an element.
  /// Throws hpe::error. With three stages, the first run searches for the fastest K, unless K is given or in the cache,
  /// or the scan is in place. The search takes as long as some twenty scans, and run() waits for it.
  void run(const void* input, void* output);

  /// Returns the best placement of input and output.
  [[nodiscard]] placement where() const;

  /// Describes the choices and their reasons, one per line.
  [[nodiscard]] std::string explain() const;

  [[nodiscard]] const choice& chosen() const { return choice_; }

 private:
  void queue(const void* input, void* output);
  void search(const void* input, void* output);
  [[nodiscard]] std::string key() const;

  const operation what_;
  const batch work_;
  const wishes wished_;
  kernel_set kernels_;
  std::vector<device_traits> devices_;
  choice choice_;
  std::vector<std::unique_ptr<team_scan>> teams_;
  bool searched_ = false;
  std::string search_report_;
};

}  // namespace hpe::scan
