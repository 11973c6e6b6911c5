#pragma once

#include <atomic>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hpe/hpe.h"
#include "interpose/gpu/oversubscribed/beside_streams.h"
#include "interpose/gpu/oversubscribed/driver_allocations.h"
#include "interpose/gpu/oversubscribed/freed_memory.h"
#include "interpose/gpu/oversubscribed/object_copies.h"
#include "interpose/gpu/oversubscribed/program_objects.h"
#include "interpose/gpu/oversubscribed/unfinished_parts.h"
#include "interpose/gpu/oversubscribed/writer_first_mutex.h"
#include "runtime/base/box.h"
#include "runtime/base/error.h"
#include "runtime/base/function_ref.h"
#include "runtime/base/options.h"
#include "runtime/base/thread_safety.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/cuda/driver.h"

namespace hpe::spread {
class kernel_model;
struct launch;
}  // namespace hpe::spread

namespace hpe::core {
class launch_planner;
class allocator;
class runtime;
struct part_in_time;
}  // namespace hpe::core

namespace hpe::cuda_hooks {

/// Lets an unmodified CUDA program allocate more memory than its GPUs have (hpe run --oversubscribe), memory on several
/// GPUs (--spread), or both. The program's large allocations are hpe memory. The first of them, or --spread, starts
/// hpe's runtime. For each piece of device work that uses hpe memory, hpe moves the data into device memory and makes
/// the program's stream wait for these moves. The driver then queues the work on the program's stream. hpe uses this
/// device memory for other data only after the work is done. Thread-safe.
class oversubscribed {
 public:
  /// hpe leaves allocations of fewer bytes to the driver, which places many of them in one granule; smallest_spread is
  /// the limit for a device whose allocations are distributed over several GPUs. The data of these small allocations
  /// never leaves device memory.
  static constexpr std::size_t smallest = std::size_t{1} << 20;
  static constexpr std::size_t smallest_spread = (std::size_t{256} << 10) + 1;

  /// Whether the environment variable HPE_OVERSUBSCRIBE is "on"; `hpe run --oversubscribe` sets the variable.
  [[nodiscard]] static bool wanted() noexcept;
  /// Returns the only object of this class; null if neither option is used, and before the first allocation of hpe
  /// memory or the start of spreading.
  [[nodiscard]] static oversubscribed* active() noexcept { return the_one.load(std::memory_order_acquire); }
  /// Returns the object for a program whose allocations on the first of these GPUs are distributed over all these GPUs.
  /// Returns null, and logs the reason, if hpe's runtime cannot be started, or has been started without some of these
  /// GPUs.
  [[nodiscard]] static oversubscribed* spread_over(const device::cuda::driver& cu, const std::vector<CUdevice>& gpus);

  /// Allocates memory on the device of the current context. Returns nullopt if hpe leaves the allocation to the driver,
  /// because the allocation is small, hpe does not manage the device's memory, or hpe's runtime cannot be started.
  [[nodiscard]] static std::optional<CUresult> allocate(const device::cuda::driver& cu, CUdeviceptr* made,
                                                        std::size_t bytes);
  /// Starts hpe's runtime if the calling thread has a current context and the runtime has not been started. Returns the
  /// only object of this class; null if hpe's runtime cannot be started.
  static oversubscribed* start(const device::cuda::driver& cu);
  /// Lets the driver allocate memory that counts (driver_allocations). Returns nullopt, without effect, if hpe manages
  /// no memory of the device.
  [[nodiscard]] std::optional<CUresult> allocate_by_driver(const driver_allocation& what, driver_call call) {
    std::optional<stream_place> here;
    if (!what.device && find_place(nullptr, here) != CUDA_SUCCESS) return std::nullopt;
    const std::optional<unsigned> device = what.device ? number_of(*what.device)
                                           : here      ? std::optional(here->device)
                                                       : std::nullopt;
    if (!device) return std::nullopt;
    return by_driver_.allocate(what, *device, here ? here->context : nullptr, call);
  }
  [[nodiscard]] driver_allocations& by_driver() noexcept { return by_driver_; }
  /// Unmaps the memory of all allocations that the program has freed. Returns whether it has unmapped any memory.
  bool give_back_freed() noexcept;
  /// Waits for the work that uses an allocation, and then frees the allocation. Returns nullopt if no hpe allocation
  /// starts at the address.
  [[nodiscard]] std::optional<CUresult> free(CUdeviceptr address);
  /// Replaces the reset of a device's primary context: waits for the work in the context, frees the allocations on the
  /// device, also those of the driver that are counted, and returns the result of the wait. Calls frees_other(address)
  /// before it frees an allocation of the driver.
  CUresult free_all(CUdevice device, function_ref<void(CUdeviceptr)> frees_other);

  /// To be called before a stream of the program, or a context that the program has created, is destroyed.
  void ends(CUstream stream) noexcept { beside_.ends(stream); }
  void ends(CUcontext context) noexcept {
    beside_.ends(context);
    by_driver_.end(context, [](CUdeviceptr) {});
  }
  /// See memory_kind::divided. hpe later waits for the earlier work, and not for what the stream waits for, nor for the
  /// program's next work on the stream, unless both works may use any memory.
  void divided(std::optional<CUstream> stream, device::cuda::division where) noexcept { beside_.divide(stream, where); }
  /// See memory_kind::change_captures. hpe leaves no command open (cuda_stream) during captures, because it could not
  /// record the command's event on a stream that is being captured.
  static void change_captures(int by) noexcept {
    captures.fetch_add(by);
    if (oversubscribed* const it = active(); it != nullptr && by > 0) it->beside_.end_open();
  }

  static void* pointer(CUdeviceptr address) {
    return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): the driver's addresses are integers
  }
  [[nodiscard]] program_objects& objects() noexcept { return objects_; }
  /// Returns the planner, which decides where arrays are placed and how launches are divided among the GPUs; null in
  /// programs that are not spread.
  [[nodiscard]] core::launch_planner* planner() const noexcept { return planner_.get(); }
  /// The memory of the current context's device that hpe reports to the program. `total` is the memory that hpe may use
  /// on this device, or on all GPUs that the device represents; `free` is the part of `total` that is not allocated,
  /// or, with --oversubscribe, that this program has not allocated.
  [[nodiscard]] std::optional<device::memory_usage> memory() const;
  /// Makes the context of a GPU, the n-th of those that a program sees as one device. Takes about 0.1 s, and has no
  /// effect later. Throws hpe::error if the driver refuses.
  void start_gpu(unsigned n) { static_cast<void>(all_[gpus_[n]]->context()); }
  /// Returns the primary context of an object's device.
  [[nodiscard]] CUcontext context_of(const program_object& object) const { return all_.at(object.device)->context(); }

  using parameter_words = std::optional<std::vector<CUdeviceptr>>;
  /// Returns the memory that a kernel may use if hpe does not know its accesses (HPE_SCOPE). find() returns the words
  /// of its parameters; nullopt if they are not known. As long as all data is in device memory, the result is
  /// everything, because hpe can queue a launch that may use everything by repeat().
  [[nodiscard]] program_use use_of_unknown(function_ref<parameter_words()> find) const {
    const bool follows_pointers = scope_ == kernel_scope::automatic;
    const bool uses_everything =
        scope_ == kernel_scope::all || (follows_pointers && !(may_use_zero_copy() && may_evict()));
    return uses_everything ? use_of(std::nullopt) : use_of(find(), follows_pointers);
  }
  /// Returns the objects that contain one of the words and the objects that every launch may use; everything if the
  /// words are not known. follows_pointers: whether the work may also use other objects; without zero-copy memory, the
  /// work then uses everything.
  [[nodiscard]] program_use use_of(const parameter_words& found, bool follows_pointers = false) const;
  /// A range of memory that a piece of work uses.
  struct accessed_range {
    CUdeviceptr address = 0;
    std::size_t bytes = 0;
    hpeAccessMode mode = HPE_INOUT;
  };
  [[nodiscard]] program_use use_of(std::span<const accessed_range> ranges) const;
  /// Whether an address is in the address space of hpe memory, perhaps outside every allocation.
  [[nodiscard]] bool may_own(CUdeviceptr address) const;
  /// Whether hpe has evicted data, or will, because the program has allocated more than a device has, or because
  /// processes share the devices (HPE_SHARE). Costs two loads.
  [[nodiscard]] bool may_evict() const;
  /// To be called if data does not fit into device memory: may_evict() is true from now on.
  void outgrow() noexcept { has_outgrown_.store(true, std::memory_order_relaxed); }

  /// The context and device in which a piece of work is queued.
  struct stream_place {
    CUcontext context = nullptr;
    unsigned device = 0;
    bool captured = false;
  };
  /// Finds the context and device of a stream; `found` stays empty if hpe has no memory on that device. Returns the
  /// driver's error if the stream (for a default stream, the calling thread) has no usable context.
  [[nodiscard]] CUresult find_place(CUstream stream, std::optional<stream_place>& found) const;

  /// Calls queue(), which queues work of the program on a stream, and orders that work with hpe's own work. If `stream`
  /// is nullptr, the stream is not known; then run() waits for the whole context, so the work is done when run()
  /// returns. Returns the result of queue(). Returns CUDA_ERROR_OUT_OF_MEMORY, and logs the reason, if device memory
  /// cannot hold all the used memory at once.
  CUresult run(CUstream stream, const program_use& use, function_ref<CUresult()> queue);

  /// Describes work that try_run() has queued, for repeat().
  struct repeatable {
    bool uses_nothing = false;  // the work uses no hpe memory
    program_use use;
    stream_place where;
    beside_streams::stand_in on;  // `ends_there` is null if the work must not be repeated
    core::queued_beside work;
  };
  /// Like run(), for a caller that has already called find_place(). Throws hpe::error if device memory cannot hold all
  /// the used memory at once. If `again` is not null, describes the work there.
  CUresult try_run(const stream_place& where, CUstream stream, const program_use& use, function_ref<CUresult()> queue,
                   repeatable* again = nullptr);
  /// Calls queue(), which queues work equal to earlier work on the same stream, and returns the result of queue(). All
  /// work that may use any memory (program_use::everything) is equal in this sense. Does not look for the work's memory
  /// again: hpe has not moved or copied this memory since it queued the earlier work. If the new work cannot become
  /// part of the earlier work's command, submits it and changes `earlier`. Returns nullopt, without effect, if hpe may
  /// have moved or copied the memory, or if the work does not fit into device memory. Throws hpe::error or
  /// std::bad_alloc.
  std::optional<CUresult> repeat(repeatable& earlier, CUstream stream, function_ref<CUresult()> queue);

  /// Queues work whose data does not fit into device memory at once: the work accesses the rest of its data in host
  /// memory (work::residency). try_to_run() calls try_run() or run_parts() with the use that it gets. `refusal`: why
  /// the data does not fit, and why the work cannot run in parts one after the other; with HPE_ZERO_COPY=off, throws
  /// HPE_ERROR_OUT_OF_MEMORY with this message. Empty: the work can run in such parts, so hpe does not warn that it is
  /// slow.
  CUresult run_with_zero_copy(program_use use, const std::string& refusal,
                              function_ref<CUresult(const program_use&)> try_to_run);

  /// Queues a launch in parts, in a program that is spread. The place must be on the first GPU, and the stream must not
  /// be in a capture. queue(n, stream) queues the part for GPU n of spread_over(): first for each GPU in `others`, on a
  /// stream of hpe, and finally for GPU 0, on the program's stream. All parts run after the earlier work and before the
  /// later work on the program's stream. Returns the driver's error if the driver refuses a part; throws hpe::error or
  /// std::bad_alloc if hpe itself cannot submit the parts. The earlier parts are then already queued.
  CUresult run_parts(const stream_place& where, CUstream stream, std::span<const unsigned> others,
                     const program_use& use, function_ref<CUresult(unsigned, CUstream)> queue);

  /// Lets a thread queue work on a device in several parts: while the object exists, all other threads that queue work
  /// with hpe memory on this device wait.
  class sequence {
   public:
    sequence(oversubscribed& of, unsigned device) : of_(of), lock_(of.sequences_.at(device)) { of.beside_.end_open(); }
    /// Like oversubscribed::run_parts. If `others` is empty, the program need not be spread.
    CUresult run_parts(const stream_place& where, CUstream stream, std::span<const unsigned> others,
                       const program_use& use, function_ref<CUresult(unsigned, CUstream)> queue) {
      return of_.queue_parts(where, stream, others, use, queue);
    }

   private:
    oversubscribed& of_;
    const std::lock_guard<writer_first_mutex> lock_;
  };

  /// Whether launches may use zero-copy memory (HPE_ZERO_COPY).
  [[nodiscard]] bool has_zero_copy() const noexcept { return zero_copy_; }
  /// Whether atomic operations of the GPUs that a program sees as one device are atomic in zero-copy memory.
  [[nodiscard]] bool have_host_atomics() const;
  [[nodiscard]] const core::allocator& allocations() const noexcept;
  /// See core::cut_in_time.
  [[nodiscard]] std::vector<core::part_in_time> cut_in_time(const spread::kernel_model& kernel,
                                                            const spread::launch& launch, unsigned count,
                                                            const std::string& obstacle, const std::string& refusal);
  /// Returns the error code for a call of the program whose work cannot be queued. Logs the reason; the first time as a
  /// warning, later at level info.
  CUresult refused(const std::exception& e) noexcept;
  /// Returns the driver's number of a device.
  [[nodiscard]] CUdevice ordinal_of(unsigned device) const { return ordinals_.at(device); }
  /// Returns the error of a part of a launch on another device, because the program's device may not report this error.
  /// To be called after a wait of the program.
  [[nodiscard]] CUresult failure_of_parts() { return parts_.failure(); }

  /// Runs call(), in which the driver only inspects the memory and queues no work. Returns the same results as run().
  CUresult look(const program_use& use, function_ref<CUresult()> call);
  /// The program's copies and fills of hpe memory.
  [[nodiscard]] object_copies& copies() noexcept { return copies_; }

 private:
  using openness = device::cuda::cuda_stream::openness;
  oversubscribed(const device::cuda::driver& cu, core::runtime& hpe, const std::vector<CUdevice>& gpus);
  static oversubscribed* instance(const device::cuda::driver& cu, const std::vector<CUdevice>& gpus);
  /// Whether the allocations of a device are distributed over several GPUs.
  [[nodiscard]] bool is_spread(unsigned device) const noexcept {
    return planner_ != nullptr && device == gpus_.front();
  }
  /// Whether work may access data in zero-copy memory.
  [[nodiscard]] bool may_use_zero_copy() const noexcept { return zero_copy_ && wanted(); }
  [[nodiscard]] bool takes(unsigned device, std::size_t bytes) const noexcept {
    return is_spread(device) ? bytes >= smallest_spread : wanted() && bytes >= smallest;
  }
  [[nodiscard]] std::optional<unsigned> number_of(CUdevice device) const;
  /// Finds the device of a context; `found` stays empty if hpe does not manage that device. Returns the driver's error
  /// if the driver's query fails.
  CUresult device_of(CUcontext context, std::optional<unsigned>& found) const;
  CUresult allocate(CUdeviceptr& made, std::size_t bytes, unsigned device);
  bool give_back(freed_memory::list&& freed) noexcept;
  [[nodiscard]] beside_streams::stand_in beside_of(const stream_place& where, CUstream stream);
  /// See try_run. work: see core::launcher::enqueue_beside.
  CUresult submit(const stream_place& where, const beside_streams::stand_in& beside, CUstream stream,
                  const program_use& use, function_ref<CUresult()> queue, core::queued_beside& work);
  /// how: how long the hpe stream's command that contains this work may stay open.
  CUresult between_streams(const beside_streams::stand_in& beside, CUstream hpe_stream, bool waits, CUstream stream,
                           CUcontext context, openness how, function_ref<CUresult()> queue);
  CUresult run(const stream_place& where, CUstream stream, const program_use& use, function_ref<CUresult()> queue);
  CUresult queue_parts(const stream_place& where, CUstream stream, std::span<const unsigned> others,
                       const program_use& use, function_ref<CUresult(unsigned, CUstream)> queue);

  static constinit std::atomic<oversubscribed*> the_one;
  inline static constinit std::atomic<int> captures{0};

  const device::cuda::driver& cu_;
  core::runtime& hpe_;
  const bool zero_copy_ = options::from_environment().zero_copy;
  const kernel_scope scope_ = options::from_environment().scope;
  std::vector<CUdevice> ordinals_;                     // the driver's ordinals of all devices
  std::vector<const device::cuda::cuda_device*> all_;  // all devices
  std::vector<unsigned> gpus_;  // the GPUs that the program sees as one device; empty if it is not spread
  std::unique_ptr<core::launch_planner> planner_;
  program_objects objects_;
  freed_memory freed_;
  driver_allocations by_driver_;
  beside_streams beside_;
  object_copies copies_;
  // One lock for each device. A thread locks it before all other locks: exclusively in a sequence, shared for all other
  // work.
  std::deque<writer_first_mutex> sequences_;
  unfinished_parts parts_;
  std::atomic<bool> has_outgrown_{false};  // see outgrow(); also true if processes share the devices
};

}  // namespace hpe::cuda_hooks
