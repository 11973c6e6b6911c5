#pragma once

/// Decides for each launch of a kernel whether it is spread, how its grid is cut, and where its arrays should lie.
///
/// A decision minimises the predicted time (cost.h): bytes that a device uses of its own memory, bytes over each link,
/// instructions, the largest part of the grid, and the cost of launches. Arrays move when the time that launches lost
/// by their place exceeds the time of the move. A launch whose arrays lie well takes from the accounts of launches
/// that want the arrays on other devices. So a program that alternates between kernels moves nothing forth and back:
/// the array lies where the kernel that gains most wants it. An empty array is placed for free.

#include <memory>
#include <span>
#include <unordered_map>

#include "runtime/spread/decision.h"
#include "runtime/spread/kernel_model.h"
#include "runtime/spread/traffic.h"

namespace hpe::spread {

/// For one thread at a time.
class planner {
 public:
  explicit planner(const machine& m, const sample_size& size = {});
  ~planner();
  planner(const planner&) = delete;
  planner& operator=(const planner&) = delete;

  /// `arrays` are the allocations that the kernel's pointers point into, one for each of kernel.pointers(); null for a
  /// pointer that points into none, which is taken for host memory. The result is valid until the next call. For a
  /// launch like an earlier one with arrays of the same versions it costs a look-up.
  const decision& decide(const kernel_model& kernel, const launch& l, std::span<const allocation* const> arrays);

  /// Forgets all launches that used an allocation, which is freed.
  void forget(std::uint64_t address);
  /// Forgets a kernel, whose module is unloaded.
  void forget(const kernel_model& kernel);

  /// Where a new allocation should lie before any kernel has used it: in parts over all devices if each gets several
  /// granules, else on device 0.
  [[nodiscard]] placement first_place(std::uint64_t bytes, std::uint64_t granule) const;

  [[nodiscard]] const machine& rates() const { return machine_; }

 private:
  struct outlook;
  struct account;
  using key = std::string;

  void make_key(const kernel_model& kernel, const launch& l, std::span<const allocation* const> arrays);
  /// For the arrays as they are.
  outlook& outlook_of(account& of, const kernel_model& kernel, const launch& l,
                      std::span<const allocation* const> arrays);
  [[nodiscard]] outlook look_at(const kernel_model& kernel, const launch& l, std::span<const allocation* const> arrays,
                                double launches_of_a_copy) const;
  [[nodiscard]] bool count_uses(account& a, const outlook& now);
  void settle(const account& of, const outlook& now);
  void forget(account& a);

  machine machine_;
  sample_size size_;
  key key_;  // of the launch at hand
  std::unordered_map<key, std::unique_ptr<account>> accounts_;
  std::unordered_map<std::uint64_t, std::vector<account*>> unhappy_;  // by allocation: launches that want another place
};

}  // namespace hpe::spread
