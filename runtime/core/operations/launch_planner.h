#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/base/cache_file.h"
#include "runtime/base/thread_safety.h"
#include "runtime/core/operations/moving_arrays.h"
#include "runtime/core/operations/replicas.h"
#include "runtime/os/worker.h"
#include "runtime/spread/planner.h"

namespace hpe::core {

/// For a list of devices, decides where new arrays are placed and how launches are cut (from the homes of their
/// arrays), and moves arrays. Thread-safe. While a thread moves arrays, only calls that concern these arrays wait.
class launch_planner {
 public:
  /// alone: the index in `list` of the device that runs every launch that is not spread. If `alone` is negative, the
  /// device that has most of the launch's bytes runs such a launch.
  launch_planner(device::device_set& devices, allocator& memory, replicas& copies, std::vector<unsigned> list,
                 spread::device_number alone = -1);

  enum class first_home : std::uint8_t {
    one,    // on the first device, as a program for one device expects; bytes that do not fit go to the next devices
    parts,  // in parts on all devices if each part has several granules, otherwise on the first device
  };
  /// Allocates an array that no kernel has used yet. If the devices of the list have too little memory, the array is
  /// placed on another device.
  [[nodiscard]] std::byte* allocate(std::size_t bytes, first_home where);
  /// Must be called before an allocation is freed.
  void forget(const void* freed);

  /// A function that describes the memory to which a pointer of a launch points, if that memory is not hpe memory. It
  /// returns nullptr for host memory.
  using foreign_memory = std::function<const spread::kernel_array*(const void*)>;

  /// A pointer parameter that a device's part of a launch replaces with the address of the device's own copy of the
  /// array.
  struct replaced_pointer {
    std::uint32_t offset = 0;  // offset of the pointer in the parameters, in bytes
    std::byte* pointer = nullptr;
  };
  struct plan {
    std::vector<spread::subgrid> parts;                    // one for each device of the list
    std::vector<std::vector<replaced_pointer>> replacing;  // one list for each device of the list
    std::vector<replicas::hold> holds;                     // keep the replicas alive; the caller destroys the holds
                                                           // after it has queued the launch
    std::string reason;
    spread::planner::measurement measured;  // the argument for took(); without a record, no measurement is needed
    bool wants_start = false;               // see spread::planner::wants_start
    bool is_early = false;                  // see spread::planner::is_early
    /// Until changes() is another number, decide() need not be called for this many further equal launches, because it
    /// would decide in the same way: `always` if the launch stays on one device because it is short, and some if it
    /// has no plan.
    std::uint32_t same_for = 0;
    static constexpr std::uint32_t always = ~std::uint32_t{0};
  };
  /// Moves and copies arrays if that makes the launch faster, and decides which blocks each device runs. `start`: see
  /// spread::planner::decide.
  [[nodiscard]] plan decide(const spread::kernel_model& kernel, const spread::launch& launch,
                            const foreign_memory& others = {}, const spread::start_cost* start = nullptr);
  /// A number that changes before a decision about an earlier launch becomes outdated. Reads one atomic variable.
  [[nodiscard]] std::uint64_t changes() const noexcept { return changes_.load(std::memory_order_acquire); }
  /// Whether stays() can have an effect: some arrays are not on the device that runs unspread launches, or these
  /// launches have lost time because of such arrays. Reads one atomic variable.
  [[nodiscard]] bool counts_stays() const { return counts_stays_.load(std::memory_order_acquire); }
  /// Must be called for each launch that cannot be spread. pointers: addresses in the arrays that the launch uses.
  /// Moves an array to the device that runs these launches once these launches have lost as much time as the move
  /// takes.
  void stays(std::span<const void* const> pointers);
  /// Records the time of a launch, in seconds; `launch` is its plan::measured. Later launches of the kernel run in the
  /// way that was faster.
  void took(const spread::planner::measurement& launch, double seconds);
  /// The seconds since the first decision, and the seconds that spreading has saved in this time, compared with
  /// launches on one device; negative if spreading cost time. `saved` includes only launches of kernels whose time on
  /// one device is known; the time of moves is subtracted from it. `planning`: the seconds that planning has taken.
  struct gain {
    double seconds = 0, saved = 0, planning = 0;
  };
  [[nodiscard]] gain gained();
  /// Must be called before a kernel ends. Waits until no thread computes a plan for the kernel.
  void forget(const spread::kernel_model& kernel);
  /// Ends the thread that computes plans. Later launches get no new plans. To be called before the process ends.
  void finish() noexcept { worker_.finish(); }

 private:
  struct described {
    std::uint64_t version = 0;
    std::uint64_t homes = 0;      // the region's homes_version at the time of the description
    bool has_no_replica = false;  // while the array had these homes, a replica did not fit into device memory
    spread::kernel_array what;
  };
  [[nodiscard]] std::vector<std::uint16_t> granules_of(const std::vector<spread::home_run>& homes,
                                                       std::uint64_t bytes) const;
  [[nodiscard]] spread::array_placement first_placement(std::size_t bytes) const;
  [[nodiscard]] const spread::kernel_array* describe(const void* pointer) HPE_REQUIRES(mutex_);
  void describe_homes(const coherence::region& r, spread::kernel_array& to) const HPE_REQUIRES(r.mutex);
  template <class IfThereIsRoom>
  [[nodiscard]] std::byte* allocate_over_devices(std::size_t bytes, first_home where,
                                                 const IfThereIsRoom& if_there_is_room);
  /// Returns the homes of an array that fills the free memory of the first device of the list, then that of the second
  /// device, and so on. Each device keeps 1 / kept_part of its memory free; if kept_part is 0, nothing. The last usable
  /// device gets the bytes that do not fit.
  [[nodiscard]] std::vector<std::uint16_t> first_devices_first(std::size_t bytes, std::size_t kept_part) const;
  class moves;
  /// Stores the measured price of moves in a file for later processes, if arrays have moved since the last call and the
  /// price has changed.
  void keep_price() noexcept HPE_REQUIRES(mutex_);
  void note_place(std::uint64_t address, bool is_home) HPE_REQUIRES(mutex_);
  void note_accounts() HPE_REQUIRES(mutex_);
  void compute(spread::outlook_request& missing);
  void replicate(const spread::kernel_model::pointer& of, const spread::launch& launch, plan& to) HPE_REQUIRES(mutex_);

  device::device_set& devices_;
  allocator& memory_;
  replicas& replicas_;
  const std::vector<unsigned> list_;
  const std::optional<cache_file> prices_;  // the file with the price of moves; nullopt if moves are not measured
  mutex mutex_;
  spread::planner planner_ HPE_GUARDED_BY(mutex_);
  std::unordered_map<const coherence::region*, described> described_ HPE_GUARDED_BY(mutex_);
  std::unordered_set<std::uint64_t> away_ HPE_GUARDED_BY(mutex_);  // allocations that are partly on other devices
  moving_arrays moving_ HPE_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point begun_ HPE_GUARDED_BY(mutex_){};
  double saved_ HPE_GUARDED_BY(mutex_) = 0;
  bool has_moved_ HPE_GUARDED_BY(mutex_) = false;                            // arrays have moved since keep_price()
  spread::move_price kept_ HPE_GUARDED_BY(mutex_) = planner_.rates().moves;  // the price that is in the file
  std::atomic<bool> counts_stays_{false};
  std::atomic<std::uint64_t> changes_{1};
  const spread::kernel_model* planned_ HPE_GUARDED_BY(mutex_) = nullptr;  // the kernel of the plan being computed
  condition_variable computed_;                                           // signals that planned_ has become null
  os::worker worker_{"hpe plan"};                                         // computes plans with when_planned::elsewhere
};

}  // namespace hpe::core
