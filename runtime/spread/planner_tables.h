#pragma once

/// What a planner knows about the launches of each kernel. Only the planner's own files use these types.

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/spread/planner.h"

namespace hpe::spread {

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

/// The move that would make a launch faster.
struct planner::wish {
  outlook::move* what = nullptr;  // null if no move makes the launch faster
  double loss = 0;                // seconds that the launch loses without the move
  bool is_try = false;            // whether the move is a trial of the slower way
};

struct planner::account {
  std::vector<std::uint64_t> addresses;  // the addresses of the allocations that may move, in ascending order
  double lost = 0;                       // seconds that launches have lost since the last move of the arrays
  double gain = 0;                       // seconds that the last launch lost because its kernel was not ready
  std::uint64_t launches = 0;            // the number of launches since the last move of the arrays
  std::uint64_t all_launches = 0;        // the number of all planned launches
  std::uint64_t last_launch = 0;         // the number of the last of them among the launches of all kernels
  unsigned refusals = 0;                 // how often other kernels have prevented the move of the arrays
  bool is_try = false;                   // whether the arrays have moved for a trial whose launch is not measured yet
  bool is_resident = false;              // whether the account is in residents_
  // For an account in residents_: the version of the array when stays() last returned a move.
  std::uint64_t asked_version = 0;
  const known_case* asked = nullptr;  // the case whose last decision was to move arrays to other homes
  bool has_copies = false;  // whether the launches use replicas of their own, which were valid at the last launch
  double uses = 0;          // the number of launches since the copies to these replicas
  double uses_expected = std::numeric_limits<double>::infinity();  // uses of a replica before it is outdated
  std::shared_ptr<way_record> record = std::make_shared<way_record>();
  std::uint32_t probes = 0;  // launches that were candidates for probe()
  /// The shape, cut and reason of the latest planned launch; `block` is zero if the plan does not spread it.
  dimension grid{}, block{};
  std::array<std::uint32_t, 3> parts_along{};
  std::string reason;
};

/// The shape of earlier launches and their arrays, with the versions of the arrays.
struct planner::known_case {
  struct array {
    std::uint64_t address = 0, version = 0, offset = 0;
    bool is_null = false;
    bool operator==(const array&) const = default;
  };
  static array array_of(const query& q, std::size_t n) {
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

struct planner::known_kernel {
  std::vector<std::unique_ptr<known_case>> cases;  // at most most_cases
  std::size_t oldest = 0;
  known_case* latest = nullptr;
  std::unordered_map<std::string, std::unique_ptr<outlook>> outlooks;
  std::unordered_map<std::string, std::shared_ptr<const sampled_traffic>> samples;
  std::unordered_set<std::string> asked;  // the keys of the outlooks for which there is a request
  std::uint64_t added = 0;                // the number of outlooks that add() has added
  std::uint64_t number = 0;               // unique for each object
  std::map<std::vector<std::uint64_t>, std::unique_ptr<account>> accounts;
  double plan_seconds = 0.002;  // seconds that the latest plan took; initially a guess
  double waited = 0;            // seconds that launches have lost because the kernel was not ready for several devices
};

}  // namespace hpe::spread
