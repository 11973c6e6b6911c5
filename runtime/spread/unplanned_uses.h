#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>

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

}  // namespace hpe::spread
