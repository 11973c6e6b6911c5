#pragma once

/// The interface between the hooks and the features of hpe that manage memory or launches in place of the driver
/// (--spread and --oversubscribe), or that observe the program's calls (--check). Each of these features registers a
/// kind of memory when the program starts. The hooks decode the arguments of a driver entry into a device_call and pass
/// it to one registered kind after another, until a kind executes the call.

#include <atomic>
#include <optional>
#include <vector>

#include "interpose/gpu/adopted/adopted_memory.h"
#include "interpose/gpu/hooks/program_steps.h"
#include "interpose/gpu/oversubscribed/driver_allocations.h"
#include "interpose/gpu/work/call_watch.h"
#include "interpose/gpu/work/device_range.h"
#include "runtime/base/box.h"
#include "runtime/base/function_ref.h"
#include "runtime/base/log.h"
#include "runtime/device/cuda/cuda_stream.h"
#include "runtime/device/device.h"

namespace hpe::cuda_hooks {

struct program_launch;

/// The memory that a piece of device work uses, if the work is not a copy or fill of a box.
struct memory_uses {
  bool anything = false;             ///< the work may use any memory; `words` and `ranges` do not limit it
  std::vector<CUdeviceptr> words{};  ///< addresses; the work may use the allocations that contain them
  bool follows_pointers = false;     ///< the work may also follow pointers in memory to other allocations
  std::vector<used_range> ranges{};
};

/// A piece of device work, as the arguments of the program's call describe it.
struct device_call {
  enum class family : std::uint8_t { copy, fill, launch, other };
  family what = family::other;
  CUstream stream = nullptr;  ///< for a default stream, its special handle (CU_STREAM_LEGACY, for example); null: the
                              ///< stream is not known
  bool waits = false;         ///< whether the program's call returns only when the work is done

  // For copies and fills.
  CUdeviceptr to = 0;
  CUdeviceptr from = 0;  ///< 0 if the work is a fill, or if the source is an array of the driver
  box_copy shape{};
  /// For a fill, the number of bytes in an element; each part of the fill consists of whole elements.
  std::size_t unit = 1;

  // For launches.
  const program_launch* launch = nullptr;
  const function_ref<CUresult()>* alone = nullptr;  ///< a function by which the driver queues the whole launch

  // For other work, including graphs.
  memory_uses uses{};
  CUgraphExec instance = nullptr;  ///< the graph that is launched; null if the work is not a graph
};

/// A call with which the program has loaded or unloaded code, or has obtained the handle of a kernel or another handle
/// of loaded code.
struct program_code_event {
  enum class step : std::uint8_t {
    loaded,       ///< `handle` is a module or library that was loaded from code in memory, at `from`
    loaded_file,  ///< `handle` is a module or library that was loaded from the file `name`
    unloaded,
    kernel,  ///< `handle` is the kernel `name` in the module or library `from`
    same,    ///< `handle` refers to the same code as the handle `from`
  };
  step what{};
  const void* handle = nullptr;
  const void* from = nullptr;
  const char* name = nullptr;
};

/// Thread safe.
class memory_kind {
 public:
  memory_kind() = default;
  memory_kind(const memory_kind&) = delete;
  memory_kind& operator=(const memory_kind&) = delete;
  virtual ~memory_kind() = default;

  // ---- allocations. Each function returns nullopt, without effect, if the call does not concern this kind.

  /// of_pool: whether the program allocates the memory from a pool, in the order of a stream.
  [[nodiscard]] virtual std::optional<CUresult> allocate(CUdeviceptr& /*made*/, std::size_t /*bytes*/,
                                                         bool /*of_pool*/) {
    return std::nullopt;
  }
  /// Called when the driver has too little memory: frees memory that this kind does not need. Returns whether this kind
  /// has freed any memory.
  [[nodiscard]] virtual bool make_room() { return false; }
  [[nodiscard]] virtual std::optional<CUresult> free(CUdeviceptr /*address*/) { return std::nullopt; }
  /// Called when the driver is to allocate memory for the program: `call` lets the driver allocate the memory, and sets
  /// its argument to the memory's address or handle. A kind that counts this memory makes room for it, calls `call`,
  /// and returns the result for the program's call.
  [[nodiscard]] virtual std::optional<CUresult> allocate_by_driver(const driver_allocation& /*what*/,
                                                                   driver_call /*call*/) {
    return std::nullopt;
  }
  virtual void changed(const driver_allocation_event& /*event*/) {}
  /// Called before the program frees memory that the driver allocated; `address` is its start.
  virtual void frees_other(CUdeviceptr /*address*/) {}
  /// Called when the program resets the primary context of a device.
  [[nodiscard]] virtual std::optional<CUresult> reset(CUdevice /*device*/) { return std::nullopt; }

  // ---- queries

  [[nodiscard]] virtual std::optional<device_range> range_at(CUdeviceptr /*address*/) { return std::nullopt; }
  /// Like cuPointerGetAttribute; also returns nullopt for an attribute whose value the driver must give. `value` must
  /// not be null.
  [[nodiscard]] virtual std::optional<CUresult> attribute(void* /*value*/, CUpointer_attribute /*attribute*/,
                                                          CUdeviceptr /*address*/) {
    return std::nullopt;
  }
  /// The free and the total memory of the current context's device that hpe reports to the program.
  [[nodiscard]] virtual std::optional<device::memory_usage> memory() { return std::nullopt; }
  /// Returns the other devices whose memory the program sees as a part of this device's memory.
  [[nodiscard]] virtual std::vector<CUdevice> joined_to(CUdevice /*device*/) { return {}; }
  /// Returns the reason why other processes cannot access the memory at an address, as the end of a sentence that
  /// begins with "memory at"; nullopt if they can.
  [[nodiscard]] virtual std::optional<const char*> obstacle_to_sharing(CUdeviceptr /*address*/) { return std::nullopt; }

  // ---- contexts, streams and code

  /// Called when the program has obtained a primary context.
  virtual void has_context(CUdevice /*device*/) {}
  virtual void ends(CUstream /*stream*/) {}
  /// Called before a call that destroys `context`, which the program has created; also, with nullptr, before a call
  /// that may destroy a primary context or a pool.
  virtual void ends(CUcontext /*context*/) {}
  /// Called with 1 before the program begins the capture of a stream, and with the negative number of captures after
  /// captures have ended, or before calls that end them by destroying the stream or context.
  virtual void change_captures(int /*by*/) {}
  /// Called where the program can tell apart the earlier and the later work of a stream: before it lets the stream
  /// wait, and after it has put a mark between the two or has waited for the stream's work. Without a stream: all
  /// streams of the process.
  virtual void divided(std::optional<CUstream> /*stream*/, device::cuda::division /*where*/) {}
  virtual void code(const program_code_event& /*event*/) {}

  // ---- work

  /// Runs work of the program that uses memory of this kind, and returns the result for the program's call. queue(part)
  /// queues one part of a copy or fill on the call's stream; for other work, it queues the whole work. Returns nullopt,
  /// without effect, if the call does not concern this kind.
  using queue_part = function_ref<CUresult(const box_part&)>;
  [[nodiscard]] virtual std::optional<CUresult> run(const device_call& /*call*/, queue_part /*queue*/) {
    return std::nullopt;
  }

  /// Runs call(), in which the driver inspects memory that later work will use. Returns nullopt in the same cases as
  /// run().
  [[nodiscard]] virtual std::optional<CUresult> look(const memory_uses& /*uses*/, function_ref<CUresult()> /*call*/) {
    return std::nullopt;
  }
  /// Called when the program creates a handle (of a texture, for example) through which kernels can use the memory at
  /// an address although no parameter contains the address.
  virtual void named_by_handle(CUdeviceptr /*address*/) {}
  /// Returns the error of work that this kind has queued outside the program's own context, or CUDA_SUCCESS. Called
  /// after the program has waited for work.
  [[nodiscard]] virtual CUresult failure() { return CUDA_SUCCESS; }

  // ---- for kinds that observe the program. The calls have succeeded, unless stated otherwise.

  /// The program's call has queued work, whether the driver or a kind of memory has executed the call.
  virtual void queued(const device_call& /*call*/) {}
  virtual void ordered(const order_step& /*step*/) {}
  virtual void has_memory(const program_memory& /*made*/) {}
  /// The program is about to free or unregister memory, in the order of a stream, or at once if `stream` is null.
  virtual void gives_back(CUdeviceptr /*base*/, CUstream /*stream*/) {}
  virtual void instance(const instance_step& /*step*/) {}
  /// `child`: the graph of which the node has a copy; null if the node is no child graph.
  virtual void has_node(CUgraphNode /*added*/, CUgraph /*child*/) {}
  /// The program is about to destroy a graph, or a node of a graph.
  virtual void ends(CUgraph /*graph*/) {}
  virtual void ends(CUgraphNode /*node*/) {}
  /// Returns the watch of a function that the program is about to queue; null if the function need not be watched.
  [[nodiscard]] virtual std::unique_ptr<host_function_watch> watch_function(CUstream /*stream*/) { return nullptr; }

 private:
  friend class memory_kinds;
  std::atomic<memory_kind*> next_{nullptr};  // the next kind in the list of memory_kinds
};

/// The list of registered kinds of memory; hooks ask them in the order of their registration. Thread safe: after add()
/// has returned, hooks also ask the new kind.
class memory_kinds {
 public:
  [[nodiscard]] static bool any() noexcept { return call_watch::has(call_watch::kinds); }
  /// `kind` must exist until the process has ended, because programs call the driver even while they exit.
  static void add(memory_kind& kind) noexcept {
    std::atomic<memory_kind*>* end = &head;
    memory_kind* there = nullptr;
    while (!end->compare_exchange_strong(there, &kind, std::memory_order_acq_rel)) {
      end = &there->next_;
      there = nullptr;
    }
    call_watch::begin(call_watch::kinds);
  }
  /// Likewise, for a kind that observes the program.
  static void add_observer(memory_kind& kind) noexcept {
    add(kind);
    call_watch::begin(call_watch::observers);
  }
  [[nodiscard]] static bool observe() noexcept { return call_watch::has(call_watch::observers); }

  /// Calls ask(kind) for one kind after another until a call returns a result, and returns that result; nullopt if no
  /// call does.
  template <class Ask>
  [[nodiscard]] static auto first(const Ask& ask) -> decltype(ask(std::declval<memory_kind&>())) {
    if (any()) [[unlikely]]
      for (memory_kind* kind = head.load(std::memory_order_acquire); kind != nullptr; kind = after(*kind))
        if (auto done = ask(*kind)) return done;
    return std::nullopt;
  }
  template <class Tell>
  static void each(const Tell& tell) {
    if (any()) [[unlikely]]
      for (memory_kind* kind = head.load(std::memory_order_acquire); kind != nullptr; kind = after(*kind)) tell(*kind);
  }

 private:
  static memory_kind* after(const memory_kind& kind) noexcept { return kind.next_.load(std::memory_order_acquire); }

  inline static constinit std::atomic<memory_kind*> head{nullptr};
};

/// Lets each kind observe a call: calls observe(kind). If this fails, hpe logs a warning, and the program's call goes
/// on.
template <class Observe>
void let_observe(const Observe& observe) noexcept {
  if (!memory_kinds::observe()) [[likely]]
    return;
  try {
    memory_kinds::each(observe);
  } catch (const std::exception& e) {
    log(log_level::warn, "HPE_CHECK: a call of the CUDA driver is not checked: {}", e.what());
  }
}
/// Returns `result`. If it is CUDA_SUCCESS, the kinds first observe the work that describe() describes.
template <class Describe>
CUresult observed(CUresult result, const Describe& describe) noexcept {
  if (memory_kinds::observe() && result == CUDA_SUCCESS) [[unlikely]]
    let_observe([&](memory_kind& kind) { kind.queued(describe()); });
  return result;
}

/// Registers the kinds of memory that the options of the process request.
void register_memory_kinds();

}  // namespace hpe::cuda_hooks
