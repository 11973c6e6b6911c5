#pragma once

#include <driver_types.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "hpe/hpe.h"

namespace hpe::cudart {

/// The memory that a piece of work may use. CPU code that touches it waits while the work is in a stream's queue.
struct memory_uses {
  std::uint64_t kernels_on = 0;     ///< a bit for each device on which kernels of unknown memory use run
  std::vector<hpeAccess> ranges{};  ///< these bytes too; ordinary memory is ignored
  bool host_code = false;           ///< functions of the program, which may touch memory themselves

  [[nodiscard]] bool none() const noexcept { return kernels_on == 0 && ranges.empty() && !host_code; }
  void add(const memory_uses& other) {
    kernels_on |= other.kernels_on;
    ranges.insert(ranges.end(), other.ranges.begin(), other.ranges.end());
    host_code = host_code || other.host_code;
  }
};

/// A piece of work. It runs in its stream's thread and has finished when it returns. An error becomes the device's
/// sticky error: all later work of the device's streams is dropped, and calls on them return the error.
class work {
 public:
  work() = default;
  template <class Function>
  requires(!std::same_as<Function, work> && std::is_invocable_r_v<cudaError_t, Function&>)
      // NOLINTNEXTLINE(google-explicit-constructor): a function is work
      work(Function run, memory_uses uses = {})
      : run_(std::move(run)), uses_(std::move(uses)) {}

  cudaError_t operator()() const { return run_(); }
  explicit operator bool() const { return static_cast<bool>(run_); }
  [[nodiscard]] const memory_uses& uses() const noexcept { return uses_; }

 private:
  std::function<cudaError_t()> run_;
  memory_uses uses_;
};

/// Queued work that was announced to hpe: while the object exists, CPU code waits before it touches memory that the
/// work uses.
class announced_work {
 public:
  announced_work() = default;
  virtual ~announced_work() = default;  ///< to be called when the work has finished or was dropped
  announced_work(const announced_work&) = delete;
  announced_work& operator=(const announced_work&) = delete;

  /// The calling thread now does the work and does not wait for announcements.
  virtual void begin() = 0;
};

/// The function by which streams announce queued work. May return null. Called by the queuing thread, without locks.
using announce_work = std::function<std::shared_ptr<announced_work>(const memory_uses&)>;

}  // namespace hpe::cudart
