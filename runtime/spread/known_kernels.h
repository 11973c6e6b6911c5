#pragma once

/// What a planner knows about the launches of each kernel.

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "runtime/base/function_ref.h"
#include "runtime/spread/decision.h"
#include "runtime/spread/link_rates.h"
#include "runtime/spread/model/kernel_model.h"
#include "runtime/spread/plan_comparison.h"
#include "runtime/spread/traffic.h"
#include "runtime/spread/way_record.h"

namespace hpe::spread {

struct known_case;

/// The launches of a kernel over one set of allocations that may move.
struct account {
  std::vector<std::uint64_t> addresses;  // the addresses of the allocations that may move, in ascending order
  double lost = 0;                       // seconds that launches have lost since the last move of the arrays
  double gain = 0;                       // seconds that the last launch lost because its kernel was not ready
  std::uint64_t launches = 0;            // the number of launches since the last move of the arrays
  std::uint64_t all_launches = 0;        // the number of all planned launches
  std::uint64_t last_launch = 0;         // the number of the last of them among the launches of all kernels
  unsigned refusals = 0;                 // how often other kernels have prevented a move since the arrays' last move
  bool is_try = false;                   // whether the arrays have moved for a trial whose launch is not measured yet
  bool is_resident = false;              // whether the launches are those for which planner::stays() was called
  // For such launches: the version of the array when stays() last returned a move.
  std::uint64_t asked_version = 0;
  const known_case* asked = nullptr;  // the case whose last decision was to move arrays to other homes
  bool has_copies = false;  // whether the launches use replicas of their own, which were valid at the last launch
  double uses = 0;          // the number of launches since the copies to these replicas
  double uses_expected = std::numeric_limits<double>::infinity();  // uses of a replica before it is outdated
  std::shared_ptr<way_record> record = std::make_shared<way_record>();
  std::uint32_t probes = 0;  // launches that were candidates for planner::probe()
  /// The shape, cut and reason of the latest planned launch; `block` is zero if the plan does not spread it.
  dimension grid{}, block{};
  std::array<std::uint32_t, 3> parts_along{};
  std::string reason;
};

/// The shape of earlier launches and their arrays, with the versions of the arrays.
struct known_case {
  struct array {
    std::uint64_t address = 0, version = 0, offset = 0;
    bool is_null = false;
    bool operator==(const array&) const = default;
  };
  static array array_of(const asked_launch& q, std::size_t n) {
    if (q.arrays[n] == nullptr) return {.is_null = q.pointer(n) == 0};
    return {q.arrays[n]->address, q.arrays[n]->version, q.offset_of(n)};
  }
  dimension grid{}, block{};
  std::vector<array> arrays;  // by pointer; for a pointer without an allocation, only is_null is set
  std::vector<std::optional<kernel_array>> described;  // by pointer
  std::shared_ptr<const sampled_traffic> traffic;      // of `now`
  account* of = nullptr;
  outlook* now = nullptr;         // null if there was no time to compute a plan
  double scale = 1;               // the scale (machine::scale) of `now`
  double wanted_scale = 1;        // the scale for which a plan was last searched
  std::uint64_t last_launch = 0;  // see account::last_launch
  bool stays = false;             // true if a move has failed, so that hpe asks for no more moves
  std::uint32_t pause = 1, until_look = 1;
  std::uint64_t added = 0;  // known_kernel::added when a plan was last searched
};

struct known_kernel {
  std::vector<std::unique_ptr<known_case>> cases;  // at most planner's most_cases
  std::size_t oldest = 0;
  known_case* latest = nullptr;
  std::unordered_map<std::string, std::unique_ptr<outlook>> outlooks;
  std::unordered_map<std::string, std::shared_ptr<const sampled_traffic>> samples;
  std::unordered_set<std::string> asked;  // the keys of the outlooks for which there is a request
  std::uint64_t added = 0;                // the number of outlooks that planner::add() has added
  std::uint64_t number = 0;               // unique for each object
  std::map<std::vector<std::uint64_t>, std::unique_ptr<account>> accounts;
  double plan_seconds = 0.002;  // seconds that the latest plan took; initially a guess
  double waited = 0;            // seconds that launches have lost because the kernel was not ready for several devices
};

/// The table of all kernels that a planner knows. Only one thread at a time may use an object.
class known_kernels {
 public:
  /// m: must outlive the object. scales: whether measured launches correct the ratio of the predicted times to times
  /// that do not depend on the kernel (machine::scale).
  known_kernels(const machine& m, bool scales) : machine_(m), scales_(scales) {}

  /// Returns a kernel's entry, and whether this call has made it.
  [[nodiscard]] std::pair<known_kernel&, bool> of(const kernel_model& kernel);
  /// Returns a kernel's entry; null if there is none.
  [[nodiscard]] known_kernel* find(const kernel_model& kernel);

  /// Returns the machine as the plans for an account's launches see it.
  [[nodiscard]] machine machine_for(const account& a) const;
  /// Returns how many seconds the launches of other kernels lose by a move for each launch `q`, whose account is `of`.
  /// Kernels that gain do not count. Assumes that other arrays of these kernels move to the places that then are best.
  [[nodiscard]] double loss_of_others(const account& of, const asked_launch& q, const decision& move) const;

  /// Remove the cases and accounts with an allocation, or a kernel. Call `ends` for each account before it ends.
  void forget(std::uint64_t address, function_ref<void(account&)> ends);
  void forget(const kernel_model& kernel, function_ref<void(account&)> ends);
  void forget_all();

 private:
  const machine& machine_;
  const bool scales_;
  using table = std::unordered_map<const kernel_model*, std::unique_ptr<known_kernel>>;
  table kernels_;
  table::value_type* latest_ = nullptr;  // the kernel of the last call of of()
  std::uint64_t made_ = 0;               // the number of entries that were made so far
};

/// Records the arrays that recent launches without a plan have used. The planner does not distribute these arrays,
/// because it cannot tell yet how much these launches would lose. Only one thread at a time may use an object.
class unplanned_uses {
 public:
  /// To be called for each launch, with a plan or without.
  void next_launch() { ++launches_; }
  /// To be called if the launch has no plan and uses an array.
  void add(std::uint64_t address) { last_[address] = launches_; }
  /// Whether one of the last launches without a plan has used one of these arrays.
  [[nodiscard]] bool concern(std::span<const std::uint64_t> addresses) const {
    if (last_.empty()) return false;
    for (const std::uint64_t address : addresses)
      if (const auto found = last_.find(address); found != last_.end() && launches_ - found->second < recent)
        return true;
    return false;
  }
  /// The number of calls of next_launch().
  [[nodiscard]] std::uint64_t launches() const { return launches_; }
  void forget(std::uint64_t address) { last_.erase(address); }
  void forget_all() { last_.clear(); }

 private:
  static constexpr std::uint64_t recent = 4096;  // a number of launches: some steps of a simulation

  std::unordered_map<std::uint64_t, std::uint64_t> last_;  // by address: the number of the last such launch
  std::uint64_t launches_ = 0;
};

}  // namespace hpe::spread
