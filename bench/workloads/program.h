#pragma once

/// The workloads of hpe, each as it is used, and as a program writes it that has no hpe.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/modules/modules.h"
#include "bench/common/devices.h"
#include "bench/workloads/team.h"

namespace hpe::bench {

/// A workload on some devices, with its data in place.
class program {
 public:
  virtual ~program() = default;
  /// Puts the data back, where a run changes what the next one would do. Not timed.
  virtual void reset() {}
  /// Does the work and returns when it is done.
  virtual void run() = 0;
  /// A few numbers of the result, by which versions are compared.
  [[nodiscard]] virtual std::vector<double> probe() = 0;
};

/// A workload as it is written without hpe.
class hand_written : public program {
 public:
  /// How data go between devices from now on; left_out: they do not, and results are wrong. False where there is no
  /// such version.
  [[nodiscard]] virtual bool use(copy_scheme scheme, bool left_out) = 0;
};

/// One that is written against a team.
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
  std::string size;  ///< in words
  double tolerance;  ///< of probes, relative; 0: equal
  std::unique_ptr<program> (*through_hpe)(int devices);
  std::unique_ptr<hand_written> (*written_by_hand)(int devices);  ///< null: there is none for these devices
  std::string peer;                                               ///< empty: none
  std::unique_ptr<program> (*strongest_peer)(unsigned threads);   ///< a library on the host's threads
  std::string not_here = {};                                      ///< why it cannot run; empty: it can
};

[[nodiscard]] workload wave_workload();
[[nodiscard]] workload rtm_workload();
[[nodiscard]] workload fft_workload();
[[nodiscard]] workload scan_workload();
[[nodiscard]] workload sort_workload();

}  // namespace hpe::bench
