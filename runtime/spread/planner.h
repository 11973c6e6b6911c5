#pragma once

/// Decides for each launch of a kernel whether it is spread, how its grid is cut, and which memory should contain its
/// arrays.
///
/// A decision minimises the predicted time (cost.h), which depends on the bytes that a device uses in its own memory,
/// the bytes that cross each link, the instructions, the size of the largest part of the grid, and the cost of
/// launches. Arrays move when the time that launches lost because of the placement of these arrays exceeds the time of
/// the move. A launch for which the current placement is best reduces the accumulated loss of launches that would gain
/// from another placement. So a program that alternates between kernels does not move arrays back and forth: an array
/// keeps the placement that is best for the kernel with the largest gain. Placing an empty array costs nothing.
///
/// Making a plan takes milliseconds, so one plan serves all launches of a kernel with the same shape and arrays of the
/// same layouts, whatever their addresses and other parameters. If other parameters change, hpe plans again, but only
/// while planning has taken no more than a small fraction of the time since the first launch. With
/// when_planned::in_time, the time for first plans is also limited: to this fraction plus planner::allowance, which is
/// enough for the kernels of short programs.

#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/spread/decision.h"
#include "runtime/spread/kernel_model.h"
#include "runtime/spread/layout_table.h"
#include "runtime/spread/placing.h"
#include "runtime/spread/traffic.h"
#include "runtime/spread/way_record.h"

namespace hpe::spread {

enum class when_planned : std::uint8_t {
  at_once,  // a launch waits for its first plan
  in_time,  // a launch waits for its plan as long as planner::allowance suffices; after that, it runs on one device
};

/// The one-time cost of a kernel's first launch over several devices: code is loaded, and devices are prepared.
struct start_cost {
  double kernel_seconds = 0;   // for this kernel's code
  double process_seconds = 0;  // in addition, for the first such kernel of the process
};

/// For one thread at a time.
class planner {
 public:
  /// The fraction of the time since the first launch that planning may take.
  static constexpr double share = 0.02;
  /// How many more seconds first plans may take. This is enough for the first kernels of a program, whose plans take 2
  /// to 10 ms each, and no more than CUDA takes to start on a second GPU (100 ms).
  static constexpr double allowance = 0.1;
  /// Returns the time in seconds.
  using clock = std::function<double()>;

  explicit planner(const machine& m, const sample_size& size = {}, when_planned when = when_planned::at_once,
                   clock now = seconds_now);
  ~planner();
  planner(const planner&) = delete;
  planner& operator=(const planner&) = delete;

  /// `arrays` are the allocations into which the kernel's pointers point, one for each of kernel.pointers(); null for a
  /// pointer that points into no allocation and is assumed to point to host memory. `start`: the cost of the kernel's
  /// first launch over several devices, as long as the kernel is not ready for such launches; null if it is ready. With
  /// a cost, the decision is one device, and no array moves to several devices. The result is valid until the next
  /// call.
  const decision& decide(const kernel_model& kernel, const launch& l, std::span<const allocation* const> arrays,
                         const start_cost* start = nullptr);
  /// Returns whether the kernel of the last decision should be made ready: its launches on one device have lost as much
  /// time as the start costs.
  [[nodiscard]] bool wants_start() const { return wants_start_; }

  /// How to record the time of the last decision's launch. If `record` is null, the launch need not be measured.
  struct measurement {
    std::shared_ptr<way_record> record;
    way how = way::alone;
    way_record::prediction predicted;
    bool is_on_trial = false;  // too few launches have been measured in this way to judge it
    /// See way_record::took.
    double took(double seconds) const {
      return record->took(how, predicted, seconds);
    }  // NOLINT(modernize-use-nodiscard)
  };
  [[nodiscard]] measurement measured() const { return is_measured_ ? measurement_ : measurement{}; }

  /// Call this for an array of a launch that runs on the device machine::alone because no plan can spread it. The
  /// launch is assumed to read the array once. Returns the placement to which the array should move before the launch;
  /// null if the array stays.
  [[nodiscard]] const placement* stays(const allocation& array);
  /// Returns whether launches have lost time because of the placement of arrays that may still move.
  [[nodiscard]] bool has_losses() const { return !unhappy_.empty(); }

  /// Call this when an array has moved in `seconds`. Corrects the price of later moves.
  void moved(const move_work& work, double seconds) { machine_.moves.took(work, seconds); }

  /// Removes all launches that used an allocation. Call this when the allocation is freed.
  void forget(std::uint64_t address);
  /// Removes a kernel. Call this when its module is unloaded.
  void forget(const kernel_model& kernel);

  /// See placing.h.
  [[nodiscard]] placement first_place(std::uint64_t bytes, std::uint64_t granule) const {
    return spread::first_place(bytes, granule, machine_);
  }

  [[nodiscard]] const machine& rates() const { return machine_; }
  /// Returns the seconds that planning has taken.
  [[nodiscard]] double planning_seconds() const { return budget_.spent(); }

 private:
  struct sampled;
  struct outlook;
  struct wish;
  struct account;
  struct known_case;
  struct known_kernel;
  using query = asked_launch;

  [[nodiscard]] static double seconds_now();

  [[nodiscard]] known_kernel& known(const kernel_model& kernel);
  [[nodiscard]] known_case* find_case(known_kernel& kernel, const query& q);
  known_case& add_case(known_kernel& kernel, const query& q);
  /// Returns the outlook for the case; null if no time is left to make one.
  outlook* outlook_of(known_kernel& kernel, known_case& c, const query& q);
  /// Makes the plan again from time to time if the other parameters have changed.
  void refresh(known_kernel& kernel, known_case& c, const query& q);
  /// `beyond`: the number of seconds by which the plan may exceed `share`.
  [[nodiscard]] bool may_plan(const known_kernel& kernel, double beyond) const;
  [[nodiscard]] outlook make_outlook(const query& q, const sampled& traffic, double uses) const;
  [[nodiscard]] std::unique_ptr<sampled> sample(const query& q) const;
  /// Stores the outlook for the layouts that the arrays will have after a move.
  void expect(known_kernel& kernel, const query& q, const decision& move, double uses);
  static void remember(account& a, const query& q, const outlook& made);
  const decision& without_plan(const account& of, const query& q);
  /// Returns how a launch runs if its arrays do not move: as planned, or on one device if that was measured to be
  /// faster.
  [[nodiscard]] static way choose(account& a, outlook& now);
  /// Returns the move that would make the launch faster, judged by predictions and measured launches.
  [[nodiscard]] wish wish_of(account& a, outlook& now, way chosen);
  /// Adds the loss of this launch. Returns whether launches have lost as much time as the move takes.
  [[nodiscard]] bool is_due(account& a, const wish& wished);
  /// `spread`: the predicted seconds of a spread launch.
  void measure(account& a, outlook& now, way how, double spread);
  [[nodiscard]] bool count_uses(account& a, const outlook& now);
  void settle(std::span<const std::uint64_t> addresses, double stake);
  void count_wait(known_kernel& kernel, double loss, const start_cost& start);
  const decision& wait_without_plan(known_kernel& kernel, account& a, const query& q, const start_cost& start);
  account& account_of(known_kernel& kernel, const query& q);
  void forget(account& a);
  void forget_all();
  [[nodiscard]] static std::string key_of(const std::string& key_of_traffic, const std::vector<std::uint32_t>& layouts,
                                          double uses);

  machine machine_;
  sample_size size_;
  const when_planned when_;
  const clock now_;
  time_budget budget_{share};
  using kernel_table = std::unordered_map<const kernel_model*, std::unique_ptr<known_kernel>>;
  kernel_table kernels_;
  kernel_table::value_type* latest_ = nullptr;  // the kernel of the last decision
  // by address: arrays of launches that no plan can spread
  std::unordered_map<std::uint64_t, std::unique_ptr<account>> residents_;
  std::unordered_map<std::uint64_t, std::vector<account*>> unhappy_;  // by allocation: the accounts with a loss
  placement home_;  // where arrays of launches that no plan can spread should be
  layout_table layouts_;
  decision unplanned_;
  measurement measurement_;   // for the latest launch that had to be measured
  bool is_measured_ = false;  // the last decision's launch must be measured
  double waited_ = 0;         // seconds that launches of all kernels have lost because the kernels were not ready
  bool wants_start_ = false;
};

}  // namespace hpe::spread
