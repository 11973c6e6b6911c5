#pragma once

/// The workloads, each in two versions: through hpe, and as a program without hpe.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/fft/fft.h"
#include "apps/modules/modules.h"
#include "bench/common/devices.h"
#include "bench/workloads/team.h"

namespace hpe::bench {

/// A version of a workload on a set of devices, whose data is in device memory.
class program {
 public:
  virtual ~program() = default;
  /// Restores the input if run() changes it. The call is not timed.
  virtual void reset() {}
  /// Runs the workload once; returns when it is done.
  virtual void run() = 0;
  /// Returns a few numbers of the result, by which versions are compared; empty if the version returns no results.
  [[nodiscard]] virtual std::vector<double> probe() = 0;
};

/// A version without hpe.
class hand_written : public program {
 public:
  /// Sets the copy scheme. left_out: exchanges copy nothing, so that the results are wrong. Returns false if this
  /// workload does not support the scheme.
  [[nodiscard]] virtual bool use(copy_scheme scheme, bool left_out) = 0;
};

/// A hand-written version that uses a team (team.h).
class on_team : public hand_written {
 public:
  on_team(int devices, std::size_t bytes_each) : team_(devices, bytes_each) {}
  [[nodiscard]] bool use(copy_scheme scheme, bool left_out) override {
    team_.use(scheme, left_out);
    return true;
  }

 protected:
  team team_;
};

struct workload {
  std::string name;
  std::string size;  ///< a text that describes the size
  double tolerance;  ///< the largest allowed relative difference of probes; 0: probes must be equal
  std::function<std::unique_ptr<program>(int devices)> through_hpe;
  std::unique_ptr<hand_written> (*written_by_hand)(int devices);  ///< null: there is no such version for these devices
  std::string peer;                                               ///< name of the fastest library; empty: none
  std::unique_ptr<program> (*strongest_peer)(unsigned threads);   ///< this library on `threads` host threads
  std::string not_here = {};                                      ///< why this build cannot run it; empty: it can
};

[[nodiscard]] workload wave_workload();
[[nodiscard]] workload rtm_workload();
/// how: the form of the transform through hpe.
[[nodiscard]] workload fft_workload(fft::form how);
[[nodiscard]] workload scan_workload();
[[nodiscard]] workload sort_workload();

}  // namespace hpe::bench
