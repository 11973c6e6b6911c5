#pragma once

/// Decides for each launch of a kernel whether it is spread, how its grid is cut, and where its arrays should lie.
///
/// A decision minimises the predicted time: bytes that a device uses of its own memory, bytes over each link, the
/// largest part of the grid, and the cost of launches. Arrays move when the time that launches lost by their place
/// exceeds the time of the move, so a program that alternates between kernels which want different places moves nothing
/// forth and back. The first launch that uses an empty array places it for free.

#include <memory>
#include <span>

#include "runtime/ptx/analysis/analysis.h"
#include "runtime/spread/decision.h"

namespace hpe::spread {

/// What the decision needs to know of a kernel, made once for each kernel.
class kernel_model {
 public:
  /// Keeps the program. `name` is a kernel of it.
  kernel_model(std::shared_ptr<const ptx::program> program, const std::string& name);
  ~kernel_model();
  kernel_model(const kernel_model&) = delete;
  kernel_model& operator=(const kernel_model&) = delete;

  /// An array that the kernel reaches through a pointer among its parameters.
  struct pointer {
    std::uint32_t offset = 0;  // of the pointer in the parameters
    bool is_written = false;   // stores or atomic operations
    bool is_read = false;
  };
  [[nodiscard]] const std::vector<pointer>& pointers() const;
  /// Why the kernel has to run on one device; empty if it may be spread.
  [[nodiscard]] const std::string& obstacle() const;
  [[nodiscard]] const ptx::analysis::kernel_analysis& analysis() const;

 private:
  friend class traffic_estimate;
  friend class planner;
  struct content;
  std::unique_ptr<content> content_;
};

/// For one thread at a time.
class planner {
 public:
  explicit planner(const machine& m);
  ~planner();
  planner(const planner&) = delete;
  planner& operator=(const planner&) = delete;

  /// `arrays` are the allocations that the kernel's pointers point into, one for each of kernel.pointers(), null for a
  /// pointer that points into none (then it may be anything, and is taken for host memory). The result is valid until
  /// the next call. A launch like an earlier one with arrays of the same versions costs a look-up.
  const decision& decide(const kernel_model& kernel, const launch& l, std::span<const allocation* const> arrays);

  /// Forgets what launches of the past wanted of an allocation that is freed.
  void forget(std::uint64_t address);
  /// Forgets a kernel, whose module is unloaded.
  void forget(const kernel_model& kernel);

  /// Where a new allocation should lie before any kernel used it: in parts over all devices from so many bytes on that
  /// each device gets several granules, else on device 0.
  [[nodiscard]] placement first_place(std::uint64_t bytes, std::uint64_t granule) const;

 private:
  struct content;
  std::unique_ptr<content> content_;
};

}  // namespace hpe::spread
