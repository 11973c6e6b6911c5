#pragma once

/// Decides, for each launch of a kernel, whether to spread the launch over several devices, how to cut its grid, and
/// which memory should contain its arrays.
///
/// A decision minimises the predicted time (cost.h). The prediction depends on the bytes that each device uses in its
/// own memory and in host memory, the bytes that cross each link, the instructions that each device runs, and the cost
/// of launches. The planner moves arrays when the time that launches have lost because of the arrays' placement exceeds
/// the time of the move. A launch for which the present placement is best reduces the accumulated loss of the launches
/// that would gain from another placement. Therefore a program that alternates between kernels does not move arrays
/// back and forth: an array keeps the placement that is best for the kernel with the largest gain. Moving an array that
/// was never written (kernel_array::is_empty) costs nothing if machine::moves_empty_arrays_free is set.
///
/// A plan takes milliseconds to compute. Therefore all launches of a kernel with the same shape and the same layouts of
/// the arrays use one plan, even if the addresses differ. If parameters other than pointers change, hpe plans again
/// after some launches, but only if planning has taken at most planner::share of the time since the first launch. With
/// when_planned::in_time and when_planned::elsewhere, first plans have a limit too: this fraction of the time plus
/// planner::allowance or planner::allowance_elsewhere.

#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/spread/array_placement.h"
#include "runtime/spread/cost.h"
#include "runtime/spread/decision.h"
#include "runtime/spread/layout_ids.h"
#include "runtime/spread/model/kernel_model.h"
#include "runtime/spread/plan_comparison.h"
#include "runtime/spread/traffic.h"
#include "runtime/spread/way_record.h"

namespace hpe::spread {

enum class when_planned : std::uint8_t {
  at_once,    // a launch without a plan waits until the plan is computed
  in_time,    // likewise, within planner::share and planner::allowance; beyond, such a launch is cut like an earlier
              // launch over the same arrays with about the same grid, or runs on one device
  elsewhere,  // likewise, but decide() computes no first plan: the caller lets another thread compute it
};

struct account;
struct known_case;
struct known_kernel;
class known_kernels;
class unplanned_uses;

/// Only one thread at a time may use an object.
class planner {
 public:
  /// The largest fraction of the time since the first launch that planning may take.
  static constexpr double share = 0.02;
  /// The seconds that first plans may take in addition to `share`. A first plan takes 2 to 10 ms, so 0.1 s is enough
  /// for the first kernels of a program. CUDA needs about as long to start on a second GPU.
  static constexpr double allowance = 0.1;
  /// The same for when_planned::elsewhere, where planning delays no launch.
  static constexpr double allowance_elsewhere = 1;
  /// Returns the time in seconds.
  using clock = std::function<double()>;

  explicit planner(const machine& m, const sample_size& size = {}, when_planned when = when_planned::at_once,
                   clock now = seconds_now);
  ~planner();
  planner(const planner&) = delete;
  planner& operator=(const planner&) = delete;

  /// Returns the decision about a launch, valid until the next call of decide() or forget(). `arrays` has one element
  /// for each of kernel.pointers(): the allocation into which the pointer points, or null if there is none. The planner
  /// assumes that the bytes behind a pointer without an allocation are distributed evenly over the memories of the
  /// devices. `start` is null if the kernel is ready for launches over several devices. Otherwise `start` is the cost
  /// of the first such launch; the decision is then one device, and no array moves to several devices.
  const decision& decide(const kernel_model& kernel, const launch& l, std::span<const kernel_array* const> arrays,
                         const start_cost* start = nullptr);
  /// Returns whether the caller should make the kernel of the last decision ready for several devices, because its
  /// launches on one device have lost as much time as the start costs.
  [[nodiscard]] bool wants_start() const { return wants_start_; }

  /// Returns whether a later launch like the last one may run in another way, because its plan, its measurement or the
  /// start is still missing. The caller should not queue many of these launches ahead of the device.
  [[nodiscard]] bool is_early() const { return is_early_; }
  /// Returns whether the last launch runs on one device because it has no plan, and no plan is being computed.
  [[nodiscard]] bool lacks_plan() const { return lacks_plan_; }

  /// How the caller records the time of the last decision's launch. If `record` is null, the caller need not measure
  /// the launch.
  struct measurement {
    std::shared_ptr<way_record> record;
    launch_way how = launch_way::alone;
    way_record::prediction predicted;
    bool is_on_trial = false;  // whether too few launches of this way have been measured for a judgement
    /// See way_record::took.
    double took(double seconds) const {
      return record->took(how, predicted, seconds);
    }  // NOLINT(modernize-use-nodiscard)
  };
  [[nodiscard]] measurement measured() const { return is_measured_ ? measurement_ : measurement{}; }

  /// With when_planned::elsewhere: the plans that decide() has missed since the last call of take_requests(). The
  /// caller computes each plan, in any thread, and adds it.
  using requests = std::vector<std::shared_ptr<outlook_request>>;
  [[nodiscard]] requests take_requests() { return std::exchange(requests_, {}); }
  /// Whether the kernel of a request is still known to the planner.
  [[nodiscard]] bool wants(const outlook_request& missing) const;
  /// Makes a computed plan available to decide(). If wants() is false, has no effect.
  void add(outlook_request& computed);

  /// Call this for each array of a launch that no plan can spread and that therefore runs on device machine::alone. The
  /// planner assumes that the launch reads the array once. Returns the placement to which the array should move before
  /// the launch; null if the array stays.
  [[nodiscard]] const array_placement* stays(const kernel_array& array);
  /// Returns whether launches have lost time because of the placement of movable arrays.
  [[nodiscard]] bool has_losses() const { return !unhappy_.empty(); }

  /// Call this after a move of arrays that took `seconds`. Corrects the price of later moves.
  void moved(const move_work& work, double seconds) { machine_.moves.took(work, seconds); }

  /// Removes all data about launches that used an allocation. Call this when the program frees the allocation.
  void forget(std::uint64_t address);
  /// Removes all data about a kernel. Call this when the program unloads the kernel's module.
  void forget(const kernel_model& kernel);

  /// See array_placement.h.
  [[nodiscard]] array_placement first_placement(std::uint64_t bytes, std::uint64_t granule) const {
    return spread::first_placement(bytes, granule, machine_);
  }

  [[nodiscard]] const machine& rates() const { return machine_; }
  /// Returns the seconds that planning has taken.
  [[nodiscard]] double planning_seconds() const { return budget_.spent(); }

 private:
  struct wish;
  using query = asked_launch;

  [[nodiscard]] static double seconds_now();

  [[nodiscard]] known_kernel& known(const kernel_model& kernel);
  [[nodiscard]] known_case* find_case(known_kernel& kernel, const query& q);
  known_case& add_case(known_kernel& kernel, const query& q);
  /// Returns the outlook (the plans) for the case; null if no time is left to compute one.
  outlook* outlook_of(known_kernel& kernel, known_case& c, const query& q);
  /// Adds a request for a plan, unless there is one. The keys are those of the traffic and of the outlook.
  void ask(known_kernel& kernel, const query& q, const machine& m, const std::string& traffic_key,
           const std::string& key, double uses);
  /// Computes the plan again if parameters other than pointers have changed and planning time is left.
  void refresh(known_kernel& kernel, known_case& c, const query& q);
  /// Returns whether planning time is left for the kernel. `beyond`: the seconds by which planning may exceed `share`.
  [[nodiscard]] bool may_plan(const known_kernel& kernel, double beyond) const;
  void make_room_for_outlook(known_kernel& kernel);
  /// Computes and stores the outlook for the layouts that the arrays will have after a move.
  void expect(known_kernel& kernel, const query& q, const decision& move, const account& a);
  static void remember(account& a, const query& q, const outlook& made);
  const decision& without_plan(const account& of, const query& q);
  /// Returns how a launch runs if its arrays do not move: spread as planned, or on one device if measurements show that
  /// one device is faster.
  [[nodiscard]] static launch_way choose(account& a, outlook& now);
  /// Returns the move that would make the launch faster, judged by predictions and measured launches.
  [[nodiscard]] wish wish_of(account& a, outlook& now, launch_way chosen);
  /// Adds the loss of this launch to the account. Returns whether launches have lost as much time as the move takes,
  /// and the move makes all kernels together faster.
  [[nodiscard]] bool is_due(account& a, const query& q, const wish& wished);
  /// `spread`: the predicted seconds of a spread launch.
  void measure(account& a, outlook& now, launch_way how, double spread);
  void probe(account& a, const outlook& now);
  void rescale(known_kernel& kernel, known_case& c, const query& q);
  [[nodiscard]] bool count_uses(account& a, const outlook& now);
  void settle(std::span<const std::uint64_t> addresses, double stake, bool from_resident = false);
  void count_wait(known_kernel& kernel, double loss, const start_cost& start);
  /// Turns a spread launch of without_plan() into one on one device, which waits for the start of the kernel's parts.
  const decision& wait_without_plan(known_kernel& kernel, const account& a, const query& q, const start_cost& start);
  account& account_of(known_kernel& kernel, const query& q);
  void forget(account& a);
  void forget_all();
  [[nodiscard]] static std::string key_of(const std::string& key_of_traffic, const std::vector<std::uint32_t>& layouts,
                                          double uses, double scale);

  machine machine_;
  sample_size size_;
  const when_planned when_;
  const clock now_;
  time_budget budget_{share};
  const std::unique_ptr<known_kernels> kernels_;
  // By address: arrays of launches that no plan can spread.
  std::unordered_map<std::uint64_t, std::unique_ptr<account>> residents_;
  std::unordered_map<std::uint64_t, std::vector<account*>>
      unhappy_;           // by address of an allocation: the accounts with a loss
  array_placement home_;  // the placement of arrays of launches that no plan can spread
  layout_ids layouts_;
  decision unplanned_;
  measurement measurement_;   // for the latest launch that the caller must measure
  bool is_measured_ = false;  // whether the caller must measure the last decision's launch
  double waited_ = 0;         // seconds that launches of all kernels have lost because the kernels were not ready
  bool wants_start_ = false;
  bool is_early_ = false;
  bool lacks_plan_ = false;
  const std::unique_ptr<unplanned_uses> unplanned_uses_;
  requests requests_;
};

}  // namespace hpe::spread
