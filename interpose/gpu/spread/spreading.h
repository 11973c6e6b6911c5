#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "interpose/gpu/oversubscribed/oversubscribed.h"
#include "interpose/gpu/spread/driver_memory.h"
#include "interpose/gpu/spread/known_launches.h"
#include "interpose/gpu/spread/launch_clock.h"
#include "interpose/gpu/spread/launch_pace.h"
#include "interpose/gpu/spread/part_launches.h"
#include "runtime/base/function_ref.h"
#include "runtime/base/options.h"
#include "runtime/core/operations/launch_planner.h"

namespace hpe::cuda_hooks {

/// Runs the launches of a program that was written for one GPU on all GPUs (hpe run --spread). The program sees only
/// device 0, with the memory of all GPUs. The program's large allocations are hpe memory, which can be distributed over
/// the GPUs (class oversubscribed). A launch runs in parts if that is faster. Thread-safe.
class spreading {
 public:
  /// Returns the only object of this class; null in a process without HPE_SPREAD, before the program has a context, and
  /// if begin() has failed.
  [[nodiscard]] static spreading* active() noexcept { return the_one.load(std::memory_order_acquire); }
  /// Whether the option HPE_SPREAD is on.
  [[nodiscard]] static bool wanted() noexcept;
  /// Whether device 0 represents several GPUs: HPE_SPREAD is on, and device 0 and at least one other GPU can access
  /// each other's memory. Throws std::bad_alloc.
  [[nodiscard]] static bool joins_gpus(const device::cuda::driver& cu);
  /// To be called when the program has a context of device 0. Constructs the only object of this process. If the driver
  /// refuses, logs the failure and constructs no object.
  static void begin(const device::cuda::driver& cu) noexcept;

  /// To be called when the process ends, before any exit handler runs. Waits for the threads that analyse kernels and
  /// load code, and lets later launches load no code. The driver loads its compiler with the first text of PTX, and the
  /// exit handlers of the compiler, which run before those of hpe, destroy what a loading thread uses.
  static void before_exit_handlers() noexcept;

  /// To be called when the program launches a kernel and no object exists. Logs once why nothing can be spread, unless
  /// begin() has logged the reason. Throws std::bad_alloc.
  static void stays_on_one_gpu(const device::cuda::driver& cu);

  /// Queues a launch in parts, or calls alone(), which queues the launch unchanged. Returns the result for the
  /// program's call.
  CUresult launch(const program_launch& what, function_ref<CUresult()> alone) noexcept;
  /// To be called for work other than launches that the program queues on the first GPU, for example a graph. The work
  /// uses the memory at the addresses in `words`; words that are not addresses of allocations have no effect. Moves
  /// arrays to the first GPU if moving them saves more time than it costs; with --oversubscribe, moves none.
  void uses(const std::vector<CUdeviceptr>& words);
  /// To be called when the program frees memory that the driver allocated.
  void frees_other(CUdeviceptr address) { others_.forget(address); }
  /// To be called before a context of the program ends, or before hpe frees the memory of a context that is to be
  /// reset.
  void ends_context() { others_.forget_all(); }
  /// To be called when the program has unloaded a module or library.
  void forget_handles();
  /// To be called when launches may use more memory than hpe found out earlier.
  void outdate_launches() noexcept { version_of_launches_.fetch_add(1); }
  /// Returns `result` if it is an error; otherwise the error of a part on another GPU, or success.
  [[nodiscard]] CUresult or_failure(CUresult result) {
    return result == CUDA_SUCCESS ? memory_.failure_of_parts() : result;
  }

 private:
  spreading(const device::cuda::driver& cu, joined_gpus&& gpus, oversubscribed& memory);

  /// Describes how a launch runs.
  struct decided {
    std::shared_ptr<const part_kernel> kernel;
    std::vector<std::byte> parameters;  // the kernel's parameters; empty if the launch does not pass all parameters
    core::launch_planner::plan plan;    // if the plan has no parts, the launch runs unchanged
    std::vector<CUfunction> functions;  // the functions of the parts
    program_use use;                    // does not include the memory of textures until describe_uses() adds it
    bool leads_nowhere = false;         // whether a pointer leads to the gap between two allocations of hpe memory
    bool may_use_pool = false;          // whether the launch may use memory of the driver's default pool
    std::string unreachable;            // why other GPUs cannot use the launch's memory; empty if they can
    bool writes_anything = false;       // whether the launch may write any memory, even the driver's
    std::uint64_t changes = 0;          // launch_planner::changes(), before the decision
    std::uint32_t same_for = 0;         // see core::launch_planner::plan
  };
  /// known: the finding about an equal launch; may be null.
  [[nodiscard]] decided decide(const program_launch& what, const known_launches::finding* known);
  /// To be called once for each launch on the first GPU, before hpe decides about it. May wait.
  void keep_pace(const program_launch& what) noexcept {
    pace_.wait(what.stream);
    clock_.look();
  }
  /// Whether hpe has already decided that a launch stays on one GPU; changes: launch_planner::changes(). known: may be
  /// null.
  [[nodiscard]] bool needs_no_decision(const known_launches::finding* known, std::uint64_t changes) const;
  /// Queues a known launch by alone(). Returns nullopt, without effect, if hpe must examine the launch.
  [[nodiscard]] std::optional<CUresult> repeat(const program_launch& what, known_launches::finding& known,
                                               function_ref<CUresult()> alone);
  /// Likewise, for a launch of which hpe has decided that it stays on one GPU.
  [[nodiscard]] std::optional<CUresult> repeat_submission(const program_launch& what, known_launches::finding& known,
                                                          function_ref<CUresult()> alone);
  static void note_known(known_launches& launches, const program_launch& what, const decided& how,
                         const oversubscribed::repeatable& submission) noexcept;
  /// Returns the kernel of a launch. If measurements must not depend on the speed of other threads (HPE_CALIBRATION),
  /// analyses it first.
  [[nodiscard]] std::shared_ptr<const part_kernel> kernel_of(const program_launch& what);
  /// The driver's allocations that a launch uses, with the kernel's pointers into these allocations.
  using driver_arrays = std::vector<std::pair<CUdeviceptr, std::shared_ptr<const driver_memory::found>>>;
  /// Adds to how.use the hpe memory to which the kernel's pointers point, and adds to `others`, unless it is null,
  /// descriptions of the driver's memory to which they point. Returns the reason why other GPUs may be unable to access
  /// the launch's memory; empty if they can.
  [[nodiscard]] std::string find_arrays(decided& how, driver_arrays* others);
  void describe_uses(const program_launch& what, decided& how) const;
  /// Returns the hpe memory that a launch uses, as far as the analysis of the kernel or the words of its parameters
  /// show it.
  [[nodiscard]] std::vector<const void*> arrays_of(const program_launch& what, const decided& how) const;
  /// Returns the hpe allocations that contain one of these addresses.
  [[nodiscard]] std::vector<const void*> arrays_at(const std::vector<CUdeviceptr>& words) const;
  /// To be called for a launch that stays on the first GPU without a decision of the planner. Reports the launch's
  /// arrays to the planner, which may move them to the first GPU.
  void stays(const program_launch& what, decided& how, std::string_view reason);
  /// Logs a warning once if the program has loaded machine code only.
  void note_machine_code() noexcept;
  /// Logs how much time spreading has saved or cost, if this is more than 2 % of the time since the first launch.
  void tell_gain() noexcept;
  static void stays_alone(decided& how, const std::string& reason);
  /// Loads the code for a launch in parts, and lets the other GPUs use the pool whose memory the launch uses. If the
  /// driver refuses, the launch stays on one GPU.
  void load(const program_launch& what, decided& how);
  [[nodiscard]] CUresult launch_decided(const program_launch& what, const oversubscribed::stream_place& where,
                                        decided& how, function_ref<CUresult()> alone,
                                        oversubscribed::repeatable* again);

  inline static constinit std::atomic<spreading*> the_one{nullptr};

  const device::cuda::driver& cu_;
  const options options_ = options::from_environment();
  const joined_gpus gpus_;  // GPU 0 is the program's device
  oversubscribed& memory_;
  driver_memory others_;
  part_launches launches_;
  launch_clock clock_;
  launch_pace pace_;
  // With --oversubscribe, the arrays of a launch may leave device memory; --explain counts all launches.
  const bool may_know_ = !oversubscribed::wanted() && !clock_.explains() && options_.spread_cut != cut_method::even;
  std::atomic<std::uint64_t> version_of_launches_{1};  // see known_launches::find
  std::atomic<bool> looked_for_texts_{false};
};

}  // namespace hpe::cuda_hooks
