#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "interpose/gpu/oversubscribed/oversubscribed.h"
#include "interpose/gpu/spread/part_kernels.h"
#include "interpose/gpu/work/launch_parameters.h"
#include "runtime/base/function_ref.h"
#include "runtime/core/operations/launch_planner.h"
#include "runtime/core/operations/zero_copy_trial.h"
#include "runtime/os/worker.h"
#include "runtime/spread/repeated_footprints.h"

namespace hpe::cuda_hooks {

/// Queues launches in parts. The grid is divided among the GPUs that the program sees as one device, or into parts that
/// run one after the other, or both. Thread-safe.
class part_launches {
 public:
  /// The arguments must outlive the object.
  part_launches(const device::cuda::driver& cu, const joined_gpus& gpus, oversubscribed& memory)
      : cu_(cu), gpus_(gpus), memory_(memory), kernels_(cu, gpus) {}

  [[nodiscard]] part_kernels& kernels() noexcept { return kernels_; }
  /// See part_kernels::forget_handles.
  void forget_handles(const std::function<void(const spread::kernel_model&)>& forgotten);
  /// See part_kernels::of_if_analysed. A thread of this object analyses kernels.
  [[nodiscard]] std::shared_ptr<const part_kernel> kernel_if_analysed(CUfunction handle) {
    return kernels_.of_if_analysed(handle, analyses_);
  }
  /// Loads the code for a launch in parts on all GPUs, and returns one function for each GPU. The first call lets the
  /// GPUs access each other's memory. Throws hpe::error if the driver refuses.
  [[nodiscard]] std::vector<CUfunction> load(const std::shared_ptr<const part_kernel>& kernel,
                                             const program_launch& what);
  /// Returns the price of making a kernel ready for launches in parts; nullopt if start() has no use, because the code
  /// is loaded or refused, or no thread can be started.
  [[nodiscard]] std::optional<spread::start_cost> start_of(const part_kernel& kernel);
  /// Lets a thread load the code for launches of a kernel in parts. Does nothing if the thread is already loading code.
  void start(const std::shared_ptr<const part_kernel>& kernel);
  /// Waits until the thread that loads code has ended. Later calls of start() do nothing, and start_of() returns a
  /// price for each kernel whose code is not loaded, so that the kernel stays on one GPU. To be called before the
  /// process ends; each of several threads that call this function waits. An analysis, which can take minutes, goes on
  /// until the process has ended: it uses nothing that exit handlers destroy.
  void finish_starts() noexcept;
  /// Returns the reason why no launch can run on several GPUs; empty if launches can.
  [[nodiscard]] std::string_view obstacle() const {
    return cannot_share_.load(std::memory_order_acquire) ? std::string_view(no_sharing_) : std::string_view();
  }

  /// Returns the hpe memory that a launch uses, and which of it the launch only reads, if the analysis of the kernel
  /// finds all of this memory; otherwise nullopt. If the program repeats the launch, returns only the bytes that the
  /// launch can touch, and which of them it overwrites; otherwise whole allocations.
  [[nodiscard]] std::optional<program_use> find_use(const program_launch& what);

  /// Describes a launch whose blocks are divided among GPUs.
  struct cut_launch {
    const part_kernel& kernel;
    std::span<const CUfunction> functions;    // one for each GPU
    std::span<const std::byte> parameters;    // in the kernel's layout
    std::span<const spread::subgrid> blocks;  // for each GPU
    // For each GPU; empty if no pointer is replaced.
    std::span<const std::vector<core::launch_planner::replaced_pointer>> replacing;
  };
  /// Queues the parts of a launch, which run at the same time, and sets `result` to the driver's result. `use` is the
  /// memory that the parts use, without the copies of arrays in how.replacing. If no part can be queued, throws
  /// hpe::error or std::bad_alloc, or returns false; then the caller may queue the launch in another way. If only some
  /// of the parts can be queued, logs an error and sets `result` to CUDA_ERROR_LAUNCH_FAILED.
  bool queue(const program_launch& what, const oversubscribed::stream_place& where, const cut_launch& how,
             program_use use, CUresult& result);

  /// Queues a launch whose memory does not fit on its devices: by alone() if the bytes that the launch can touch fit,
  /// else in parts that run one after the other, or while zero-copy memory holds the excess data. If both are possible,
  /// a trial finds the faster way. With zero-copy memory, all GPUs run the launch if they can; otherwise, it is queued
  /// by whole().
  /// `use` is the memory of the whole launch, and `refusal` the error message of the attempt to queue it. `unreachable`
  /// is the reason why other GPUs cannot use the launch's memory; empty if they can. Throws HPE_ERROR_OUT_OF_MEMORY,
  /// with a message that names the obstacles, if none of the three ways is possible. If only some of the parts can be
  /// queued, logs an error and returns CUDA_ERROR_LAUNCH_FAILED.
  CUresult queue_beyond_memory(const program_launch& what, const oversubscribed::stream_place& where,
                               const program_use& use, const std::string& refusal, const std::string& unreachable,
                               function_ref<CUresult()> whole, function_ref<CUresult()> alone);

 private:
  /// Makes the contexts of the other GPUs, unless the process ends.
  void start_gpus() noexcept;
  void share_memory();
  /// The facts that decide whether hpe can divide a launch.
  struct division {
    std::shared_ptr<const part_kernel> kernel;
    std::vector<std::byte> parameters;  // in the kernel's layout
    bool is_known = false;              // whether hpe can find the memory that a part of the launch uses
    std::string obstacle;               // why hpe cannot divide the launch; empty if it can
  };
  [[nodiscard]] division examine(const program_launch& what, const oversubscribed::stream_place& where,
                                 const std::string& unreachable);
  /// Sets `count` to the number of parts.
  CUresult queue_in_time(const program_launch& what, const oversubscribed::stream_place& where, const division& how,
                         const std::string& refusal, function_ref<CUresult()> alone, std::size_t& count);
  /// See queue_beyond_memory. refusal: see oversubscribed::run_with_zero_copy.
  CUresult queue_with_zero_copy(const program_launch& what, const oversubscribed::stream_place& where,
                                const division& how, const program_use& use, const std::string& refusal,
                                function_ref<CUresult()> whole);
  using run_parts =
      function_ref<CUresult(std::span<const unsigned>, const program_use&, function_ref<CUresult(unsigned, CUstream)>)>;
  bool queue(const program_launch& what, const cut_launch& how, program_use use, CUresult& result, run_parts run);

  const device::cuda::driver& cu_;
  const joined_gpus& gpus_;  // number 0 is the program's device
  oversubscribed& memory_;
  part_kernels kernels_;
  std::once_flag shares_;
  std::string no_sharing_;  // why the GPUs cannot use each other's memory; set before cannot_share_
  std::atomic<bool> cannot_share_{false};
  std::atomic<bool> is_starting_{false}, cannot_start_{false}, is_ending_{false};
  std::once_flag ends_;
  core::zero_copy_trial trial_;
  spread::repeated_footprints footprints_;
  os::worker analyses_{"hpe analysis"};
  os::worker code_thread_{"hpe code"};
};

/// Queues the launches of a program that is not spread: each launch runs on the device that the program has chosen.
/// Thread-safe.
class launches_of_devices {
 public:
  /// Queues a launch by whole(), or in parts if the launch's memory does not fit on the device. whole() has an
  /// enqueue_guard; alone() only lets the driver queue the launch. `assumed` returns the memory of the launch
  /// without an analysis of the kernel.
  CUresult launch(const device::cuda::driver& cu, oversubscribed& memory, const program_launch& what,
                  function_ref<program_use()> assumed, function_ref<CUresult()> whole, function_ref<CUresult()> alone);
  /// To be called when the program has unloaded a module or library.
  void forget_handles();

 private:
  struct one {
    one(const device::cuda::driver& cu, oversubscribed& memory, CUdevice device);
    joined_gpus gpu;
    part_launches launches;
  };
  [[nodiscard]] part_launches& of(const device::cuda::driver& cu, oversubscribed& memory, unsigned device);

  mutex mutex_;
  std::map<unsigned, one> all_ HPE_GUARDED_BY(mutex_);  // by the number of the device
};

}  // namespace hpe::cuda_hooks
