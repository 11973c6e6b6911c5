// A hook reports a call after the driver has returned, and before the program's code continues. So if a thread waits
// for work that another thread has queued, the checker knows the work before the wait.
#include "interpose/gpu/check/checked_program.h"

#include <atomic>
#include <utility>

#include "interpose/check/message_uses.h"
#include "interpose/gpu/check/analysed_kernels.h"
#include "interpose/gpu/check/checked_graphs.h"
#include "interpose/gpu/check/checked_streams.h"
#include "interpose/gpu/check/program_allocations.h"
#include "interpose/gpu/hooks/memory_kind.h"
#include "interpose/gpu/interposer.h"
#include "interpose/gpu/spread/program_code.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/options.h"
#include "runtime/check/host_watch.h"
#include "runtime/check/process_report.h"
#include "runtime/core/operations/host_access.h"
#include "runtime/core/operations/launcher.h"

namespace hpe::cuda_hooks {

namespace {

using check::call_place;
using place_ptr = std::shared_ptr<const call_place>;

place_ptr place_of(const char* call) { return std::make_shared<const call_place>(call_place::here(call)); }

check::operation_ptr operation_at(const place_ptr& place) {
  return std::make_shared<const check::checked_operation>(check::checked_operation{place->call, place});
}

/// A function of the program that a thread of the driver runs in the order of a stream. While it runs, CPU code has
/// waited for the earlier work of the stream.
class ordered_function final : public host_function_watch {
 public:
  ordered_function(check::checker& to, check::operation_run run) : checker_(to), run_(std::move(run)) {}
  void begins() noexcept override {
    guarded_call([&] { checker_.begin_host_function(run_); });
  }
  void ends() noexcept override {
    guarded_call([&] { checker_.end_host_function(); });
  }

 private:
  template <class Call>
  void guarded_call(const Call& call) noexcept {
    try {
      call();
      check::host_watch::of_process()->end_waited(checker_);
    } catch (const std::exception& e) {
      log(log_level::error, "HPE_CHECK: a call of a host function is not checked: {}", e.what());
    }
  }

  check::checker& checker_;
  const check::operation_run run_;
};

class checked_program final : public memory_kind, public check::report_source {
 public:
  explicit checked_program(const options& chosen)
      : report_(chosen),
        checker_(
            report_.ignored(), is_unchanged,
            [this](std::uint64_t address) {
              parts* const its = started_.load();
              return its != nullptr && program_allocations::is_known_to(its->cu, address);
            },
            [] {
              auto* const watch = check::host_watch::of_process();
              return watch != nullptr ? watch->take_touches() : std::vector<check::host_touch>();
            }) {
    messages_.make_known();
  }

  void queued(const device_call& call) override {
    parts* const its = start();
    if (its == nullptr) return;
    if (core::queues_for_hpe()) return add_written(*its, call);
    if (its->streams.is_captured(call.stream)) return its->graphs.captured(call.stream, place_of(name_of(call)));
    switch (call.what) {
      case device_call::family::copy: return add_copy(*its, call);
      case device_call::family::fill: return add_fill(*its, call);
      case device_call::family::launch: return add_launch(*its, call);
      case device_call::family::other: return add_other(*its, call);
    }
  }
  void ordered(const order_step& step) override {
    parts* const its = start();
    if (its == nullptr) return;
    its->streams.order(step, place_of("cuEventRecord"));
    using enum order_step::kind;
    if (step.what == waited_for_event || step.what == waited_for_stream || step.what == waited_for_context) waited();
  }
  void has_memory(const program_memory& made) override {
    parts* const its = start();
    if (its == nullptr || its->streams.is_captured(made.stream)) return;
    using enum program_memory::kind;
    const char* const name = made.stream != nullptr    ? "cuMemAllocAsync"
                             : made.what == managed    ? "cuMemAllocManaged"
                             : made.what == pinned     ? "cuMemAllocHost"
                             : made.what == registered ? "cuMemHostRegister"
                                                       : "cuMemAlloc";
    if (made.what == managed && !has_managed_.exchange(true))
      log(log_level::warn, "HPE_CHECK: CPU code that touches managed memory is not seen on GPUs");
    const place_ptr place = place_of(name);
    its->memory.add(made, {operation_at(place), work_for(*its, made.stream, place)});
  }
  void gives_back(CUdeviceptr base, CUstream stream) override {
    parts* const its = start();
    if (its == nullptr || base == 0 || its->streams.is_captured(stream)) return;
    const place_ptr place = place_of(stream != nullptr ? "cuMemFreeAsync" : "cuMemFree");
    // A free outside the order of a stream waits for all work that may use the memory.
    if (stream == nullptr) {
      its->streams.waited_for_all();
      waited();
    }
    static_cast<void>(its->memory.remove(base, {operation_at(place), work_for(*its, stream, place)}));
  }
  void has_node(CUgraphNode added, CUgraph child) override {
    if (parts* const its = start()) its->graphs.added(added, place_of("cuGraphAddNode"), child);
  }
  void ends(CUgraph graph) override {
    if (parts* const its = started_.load()) its->graphs.ends(graph);
  }
  void ends(CUgraphNode node) override {
    if (parts* const its = started_.load()) its->graphs.ends(node);
  }
  void instance(const instance_step& step) override {
    if (parts* const its = start()) its->graphs.step(step, place_of("cuGraphInstantiate"));
  }
  /// Code that asks for attributes may let other devices, such as network cards, write the memory without hpe's
  /// knowledge.
  std::optional<CUresult> attribute(void* /*value*/, CUpointer_attribute /*attribute*/, CUdeviceptr address) override {
    if (parts* const its = started_.load()) its->memory.set_written(address);
    return std::nullopt;
  }
  std::unique_ptr<host_function_watch> watch_function(CUstream stream) override {
    parts* const its = start();
    if (its == nullptr || its->streams.is_captured(stream)) return nullptr;
    auto work = its->streams.queue(stream, {.uses_memory = true}, place_of("cuLaunchHostFunc"));
    return std::make_unique<ordered_function>(checker_, check::operation_run{nullptr, std::move(work)});
  }
  void ends(CUstream stream) override {
    if (parts* const its = start()) its->streams.ends(stream);
  }
  void ends(CUcontext context) override {
    if (context != nullptr) end_memory(context, "cuCtxDestroy");
  }
  std::optional<CUresult> reset(CUdevice device) override {
    end_memory(device, "cuDevicePrimaryCtxReset");
    return std::nullopt;
  }
  void code(const program_code_event& event) override {
    program_code::of_process().record(event);
    parts* const its = started_.load();
    if (its != nullptr && event.what == program_code_event::step::unloaded) its->kernels.forget();
  }

  const check::findings_report* form() override {
    return check::host_watch::of_process() != nullptr ? &report_ : nullptr;
  }
  std::vector<check::finding> finish() override {
    check::host_watch::of_process()->end_all();
    return checker_.finish();
  }
  [[nodiscard]] std::string_view note() const override {
    return "on GPUs, only accesses of kernels that certainly happen count, and no touches of managed memory by CPU "
           "code; soft devices (--cuda soft) check all";
  }

 private:
  /// Whether CPU code, libc and MPI have written no device memory at an address through hpe.
  static bool is_unchanged(std::uint64_t begin, std::uint64_t /*end*/) {
    const interposer* const hpe = interposer::started();
    return hpe == nullptr || !hpe->may_know(begin);
  }

  /// The objects that need the driver.
  struct parts {
    parts(check::checker& to, const device::cuda::driver& given)
        : cu(given), streams(to, given), memory(to, given), kernels(given), graphs(given, kernels) {}
    const device::cuda::driver& cu;
    checked_streams streams;
    program_allocations memory;
    analysed_kernels kernels;
    checked_graphs graphs;
  };

  check::checker& started_checker() {
    static const bool watches = [] {
      if (check::host_watch::start(::hpeWatchTouches) == HPE_SUCCESS) return true;
      log(log_level::warn, "HPE_CHECK: not all CPU code that touches memory of queued work is seen: {}",
          ::hpeGetLastErrorMessage());
      return false;
    }();
    static_cast<void>(watches);
    return checker_;
  }

  /// The buffers of MPI. Does not start the driver, because a program can call MPI before it chooses its GPU.
  class checked_messages final : public interpose::message_uses {
   public:
    explicit checked_messages(checked_program& of) : program_(of) {}

   private:
    check::checker& started_checker() override { return program_.started_checker(); }
    buffer_memory memory_at(const void* address) const override {
      if (core::host_access::of(address) != nullptr) return buffer_memory::other;
      const parts* const its = program_.started_.load();
      const auto number = reinterpret_cast<CUdeviceptr>(address);
      if (its == nullptr || its->memory.place_of(number) == program_allocations::place::pageable)
        return buffer_memory::ordinary;
      return its->memory.has_pages_of_host(number) ? buffer_memory::pinned : buffer_memory::of_cuda;
    }
    checked_program& program_;
  };

  parts* start() {
    parts* its = started_.load(std::memory_order_acquire);
    if (its != nullptr) return its;
    interposer* const hpe = interposer::instance();
    if (hpe == nullptr) return nullptr;
    static auto* const made = [&] {
      static_cast<void>(started_checker());
      check::host_watch::of_process()->leave_out(reinterpret_cast<const void*>(hpe->driver().cuMemFreeHost));
      return new parts(checker_, hpe->driver());
    }();
    started_.store(made, std::memory_order_release);
    return made;
  }

  // The end of a context waits for all of its work.
  template <class Owner>
  void end_memory(Owner of, const char* call) {
    parts* const its = start();
    if (its == nullptr) return;
    its->streams.waited_for_all();
    waited();
    its->memory.remove_all(of, {operation_at(place_of(call)), nullptr});
  }

  void waited() { check::host_watch::of_process()->end_waited(checker_); }

  /// Watches the host memory that work accesses, until CPU code has waited for the work.
  void watch(parts& its, const check::past_ptr& work, std::span<const check::access_range> accesses) {
    if (checker_.has_waited(work)) return;
    for (const auto& each : its.memory.host_memory_of(accesses)) check::host_watch::of_process()->watch(each, work);
  }

  static std::shared_ptr<const check::checked_work> work_for(parts& its, CUstream stream, const place_ptr& place) {
    return stream != nullptr ? its.streams.queue(stream, {}, place) : nullptr;
  }

  static const char* name_of(const device_call& call) {
    switch (call.what) {
      case device_call::family::copy: return call.waits ? "cuMemcpy" : "cuMemcpyAsync";
      case device_call::family::fill: return "cuMemset";
      case device_call::family::launch: return "cuLaunchKernel";
      case device_call::family::other: break;
    }
    return call.instance != nullptr ? "cuGraphLaunch" : "a call of the CUDA driver";
  }

  void add_copy(parts& its, const device_call& call) {
    if (call.shape.extent.is_empty()) return;
    const place_ptr place = place_of(name_of(call));
    const auto work = its.streams.queue(call.stream, {.uses_memory = true}, place);
    std::vector<check::access_range> ranges;
    using enum program_allocations::place;
    const auto to = its.memory.place_of(call.to), from = its.memory.place_of(call.from);
    const auto add = [&](CUdeviceptr at, auto place, const box& shape, check::use how) {
      if (at == 0 || place == pageable) return;
      const auto more = accesses_of(at, shape, how);
      ranges.insert(ranges.end(), more.begin(), more.end());
    };
    add(call.from, from, call.shape.read(), check::use::read);
    add(call.to, to, call.shape.written(), check::use::write);
    checker_.add({operation_at(place), work}, ranges);
    const bool is_on_device = to == device && from == device;
    if ((call.waits && !is_on_device) || to == pageable || from == pageable) checker_.wait(work->when);
    watch(its, work->when, ranges);
    waited();
  }

  void add_fill(parts& its, const device_call& call) {
    if (call.shape.extent.is_empty()) return;
    const place_ptr place = place_of(name_of(call));
    const auto work = its.streams.queue(call.stream, {}, place);
    const auto ranges = accesses_of(call.to, call.shape.written(), check::use::write);
    checker_.add({operation_at(place), work}, ranges);
    watch(its, work->when, ranges);
  }

  void add_launch(parts& its, const device_call& call) {
    const place_ptr place = place_of(name_of(call));
    const auto work = its.streams.queue(call.stream, {.uses_memory = true}, place);
    launch_accesses what = its.kernels.describe(*call.launch, place);
    const check::operation_run run{what.what, work};
    add_accesses(its, run, std::move(what));
  }
  void add_accesses(parts& its, const check::operation_run& run, launch_accesses what) {
    for (const auto& [bytes, base] : its.memory.take_outside(what.certain, what.pointers))
      checker_.add_outside(run, bytes, base);
    for (const CUdeviceptr each : what.written_before) its.memory.set_written(each);
    checker_.add(run, what.certain);
    for (const CUdeviceptr each : what.written) its.memory.set_written(each);
    if (what.writes_anywhere) its.memory.set_all_written();
    // CPU code can wait for the value that the kernel writes, and hpe does not see this wait.
    if (what.tells_host && reaches_host(its, what)) checker_.wait(run.work->when);
    watch(its, run.work->when, what.certain);
  }
  static bool reaches_host(const parts& its, const launch_accesses& what) {
    return std::any_of(what.what->pointers.begin(), what.what->pointers.end(),
                       [&](const auto& each) { return its.memory.is_of_host(each.second); });
  }

  // hpe orders the work of hpe::launch and hpeEnqueue by the data that it uses, so the checker knows neither the order
  // nor what may be in the program's own memory afterwards.
  static void add_written(parts& its, const device_call& call) {
    if (call.what == device_call::family::copy || call.what == device_call::family::fill)
      return its.memory.set_written(call.to);
    launch_accesses what;
    if (call.what == device_call::family::launch) {
      what = its.kernels.describe(*call.launch, place_of(name_of(call)));
    } else {
      what.written = call.uses.words;
      what.writes_anywhere = call.uses.anything || call.instance != nullptr;
    }
    for (const check::access_range& each : what.certain)
      if (each.how == check::use::write || each.how == check::use::atomic) its.memory.set_written(each.begin);
    for (const CUdeviceptr each : what.written) its.memory.set_written(each);
    if (what.writes_anywhere) its.memory.set_all_written();
  }

  void add_other(parts& its, const device_call& call) {
    const auto graph = call.instance != nullptr ? its.graphs.find(call.instance) : nullptr;
    const bool meets_others = graph != nullptr && graph->meets_others;
    const auto work = its.streams.queue(call.stream, {.uses_memory = true, .waits_for_unknown = meets_others},
                                        place_of(name_of(call)));
    if (graph != nullptr) {
      for (std::size_t n = 0; n < graph->steps.size(); ++n)
        add_accesses(its, {graph->steps[n].what, work, graph->order, n}, graph->steps[n]);
      // The program may see how far the graph has come, and then queue work or access memory.
      if (meets_others) checker_.wait(work->when);
      waited();
      if (graph->is_whole) return;
    }
    if (call.uses.anything) its.memory.set_all_written();
    for (const CUdeviceptr each : call.uses.words) {
      its.memory.set_written(each);
      // CPU code can wait for a value that the work writes.
      if (its.memory.is_of_host(each)) checker_.wait(work->when);
    }
  }

  const check::findings_report report_;
  check::checker checker_;
  std::atomic<parts*> started_{nullptr};
  std::atomic<bool> has_managed_{false};
  checked_messages messages_{*this};
};

}  // namespace

void check_program(const options& chosen) {
  HPE_REQUIRE(!chosen.spread && chosen.oversubscribe != oversubscription::on, HPE_ERROR_NOT_SUPPORTED,
              "HPE_CHECK works neither with HPE_SPREAD nor with HPE_OVERSUBSCRIBE=on: hpe runs launches of such "
              "programs in parts, whose accesses it does not record for each launch");
  // Never destroyed, because threads of the program may call the driver until the process ends.
  static auto* const program = new checked_program(chosen);
  memory_kinds::add_observer(*program);
  check::add_to_report(*program);
}

}  // namespace hpe::cuda_hooks
