#pragma once

#include <initializer_list>
#include <memory>
#include <vector>

#include "interpose/gpu/interposer.h"
#include "interpose/gpu/work/call_watch.h"
#include "interpose/gpu/work/driver_writes.h"
#include "interpose/gpu/work/launch_parameters.h"
#include "interpose/gpu/work/queued_uses.h"
#include "interpose/gpu/work/queuing_threads.h"
#include "runtime/base/function_ref.h"

namespace hpe::cuda_hooks {

/// Exists while a hook, or hpe's own code, queues device work that uses the program's memory. The constructor prepares
/// adopted memory for the work, and waits for deferred_copies; the constructor and the destructor record the work in
/// adopted_memory, in queued_uses (for the waits of libc and MPI calls), and in driver_writes. If none of these is in
/// use, the object costs a few stores and loads.
class enqueue_guard {
 public:
  /// For work that may use any memory.
  explicit enqueue_guard(CUstream stream) : enqueue_guard(stream, std::initializer_list<used_range>{}) {}
  /// For work that uses these ranges of device memory; ranges of host memory are ignored. If the list is empty, the
  /// work may use any memory.
  enqueue_guard(std::initializer_list<used_range> ranges) : enqueue_guard(unknown_stream(), ranges) {}
  /// after: the queue that makes this work. The work runs after the deferred_copies of this queue, so the constructor
  /// does not wait for them. May be null.
  enqueue_guard(CUstream stream, std::initializer_list<used_range> ranges, const interpose::copy_queue* after = nullptr)
      : here_(queuing_threads::mine()), stream_(stream) {
    queuing_threads::enter(here_);
    if (must_begin()) [[unlikely]]
      begin([&] {
        await_deferred(ranges, after);
        tell(ranges);
      });
    if (call_watch::has(call_watch::kinds)) [[unlikely]]
      writes_for_driver_ = may_write_for_driver(ranges);
  }
  /// For a kernel launch, which may use any memory or, with HPE_SCOPE=args, the memory to which its parameters point.
  /// driver_writes does not count the launch here, because the analysis of the kernel shows whether the launch may
  /// write memory of the driver.
  explicit enqueue_guard(const program_launch& launch) : here_(queuing_threads::mine()), stream_(launch.stream) {
    queuing_threads::enter(here_);
    if (must_begin()) [[unlikely]]
      begin([&] {
        await_deferred({});
        tell(launch);
      });
  }
  ~enqueue_guard() {
    if (begun_) [[unlikely]]
      end();
    if (writes_for_driver_) [[unlikely]]
      driver_writes::count();
    if (needs_wait_) {
      queuing_threads::count(here_, stream_);
      if (queued_uses::kept()) [[unlikely]]
        note();
    }
    queuing_threads::leave(here_);
  }

  /// To be called if hpe need not wait for this work later, for example because the caller itself waits for it.
  void needs_no_wait() noexcept { needs_wait_ = false; }

  enqueue_guard(const enqueue_guard&) = delete;
  enqueue_guard& operator=(const enqueue_guard&) = delete;

  /// If true, the work must not be queued, and the program's call must return result().
  [[nodiscard]] bool failed() const noexcept { return result_ != CUDA_SUCCESS; }
  [[nodiscard]] CUresult result() const noexcept { return result_; }

 private:
  /// Whether the constructor has something to do: after CPU code has touched device memory, if libc and MPI calls wait
  /// only for the work that uses their memory, and if there are deferred_copies.
  [[nodiscard]] static bool must_begin() noexcept {
    return call_watch::has(call_watch::touched | call_watch::waits | call_watch::copies_deferred);
  }
  void begin(function_ref<void()> steps);
  static void await_deferred(std::initializer_list<used_range> ranges, const interpose::copy_queue* after = nullptr);
  void tell(std::initializer_list<used_range> ranges);
  void tell(const kernel_launch& launch);
  [[nodiscard]] static bool may_write_for_driver(std::initializer_list<used_range> ranges);
  void end() noexcept;
  void note() noexcept;

  queuing_threads::thread_record& here_;
  CUstream stream_;
  adopted_memory::work_in_flight in_flight_;
  std::unique_ptr<std::vector<queued_uses::queued_range>> used_;  // the memory that the work uses; nullptr: any memory
  bool begun_ = false;
  bool needs_wait_ = true;
  bool writes_for_driver_ = false;
  CUresult result_ = CUDA_SUCCESS;
};

}  // namespace hpe::cuda_hooks
