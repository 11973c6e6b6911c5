// For each launch of the program, core::launch_planner decides how the launch runs, and moves arrays. After this
// decision, class oversubscribed queues the launch as a submission, whole or in parts. The thread holds no lock of this
// folder while the driver queues the launch. So if the driver's queue is full and the launch has to wait, it delays
// only launches that use the same arrays.
#include "interpose/gpu/spread/spreading.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <mutex>

#include "interpose/gpu/oversubscribed/driver_result.h"
#include "interpose/gpu/spread/known_launches.h"
#include "interpose/gpu/work/driver_writes.h"
#include "interpose/gpu/work/launch_parameters.h"
#include "runtime/base/log.h"
#include "runtime/base/options.h"

namespace hpe::cuda_hooks {

using device::cuda::entered;

namespace {

constexpr std::uint32_t always = core::launch_planner::plan::always;

std::uint64_t blocks_of(const program_launch& what) {
  return what.grid[0] * std::uint64_t{what.grid[1]} * what.grid[2];
}

// Whether launches that stay on one GPU are reported to the planner, so that it can move their arrays to this GPU. With
// --oversubscribe, the planner does not move arrays, because one GPU may have too little memory for them.
bool counts_stays(const oversubscribed& memory) {
  return !oversubscribed::wanted() && memory.planner()->counts_stays();
}

std::ptrdiff_t devices_of(const core::launch_planner::plan& plan) {
  return std::ranges::count_if(plan.parts, [](const spread::subgrid& part) { return part.blocks() > 0; });
}

pid_t owner = 0;  // the process of spreading::active(); children made by fork have none of its threads

}  // namespace

spreading::spreading(const device::cuda::driver& cu, joined_gpus&& gpus, oversubscribed& memory)
    : cu_(cu),
      gpus_(std::move(gpus)),
      memory_(memory),
      others_(cu, gpus_),
      launches_(cu, gpus_, memory),
      clock_(cu, memory.planner()),
      pace_(cu) {}

bool spreading::wanted() noexcept {
  static const bool wanted = [] {
    try {
      return options::from_environment().spread;
    } catch (const std::exception& e) {
      log(log_level::warn, "the program runs on one GPU: {}", e.what());
      return false;
    }
  }();
  return wanted;
}

bool spreading::joins_gpus(const device::cuda::driver& cu) {
  static const bool joins = [&] {
    if (!wanted()) return false;
    return joined_gpus(cu).count() > 1;
  }();
  return joins;
}

void spreading::stays_on_one_gpu(const device::cuda::driver& cu) {
  static std::atomic<bool> told{false};
  if (told.load(std::memory_order_relaxed) || told.exchange(true)) return;
  if (joins_gpus(cu)) return;  // begin() has logged the reason
  int gpus = 0;
  const bool is_one = cu.cuDeviceGetCount(&gpus) != CUDA_SUCCESS || gpus < 2;
  log(log_level::warn, "hpe run --spread: nothing can be spread, because {}",
      is_one ? "the program sees one GPU" : "device 0 and the other GPUs do not reach each other's memory");
}

void spreading::note_machine_code() noexcept {
  if (looked_for_texts_.load(std::memory_order_relaxed) || looked_for_texts_.exchange(true)) return;
  if (program_code::of_process().has_texts()) return;
  log(log_level::warn,
      "hpe run --spread: nothing can be spread so far, because the program has loaded machine code only, and no PTX");
}

void spreading::tell_gain() noexcept {
  constexpr double little = 0.02;
  const core::launch_planner::gain all = memory_.planner()->gained();
  log(log_level::info, "hpe run --spread: planning took {:.3f} s", all.planning);
  if (std::abs(all.saved) <= little * all.seconds) return;
  log(log_level::warn,
      "hpe run --spread: launches and moves of arrays took {:.2f} s {} than launches on one GPU, in {:.2f} s since the "
      "first launch",
      std::abs(all.saved), all.saved > 0 ? "less" : "more", all.seconds);
}

void spreading::begin(const device::cuda::driver& cu) noexcept {
  static std::mutex making;
  static bool tried = false;
  if (active() != nullptr) return;
  try {
    if (!joins_gpus(cu)) return;
    const std::lock_guard lock(making);
    if (std::exchange(tried, true)) return;
    joined_gpus gpus(cu);
    gpus.enter();
    oversubscribed* const memory = oversubscribed::spread_over(cu, gpus.devices());
    if (memory == nullptr) return;
    owner = ::getpid();
    the_one.store(new spreading(cu, std::move(gpus), *memory), std::memory_order_release);
    // This function runs before the exit handler that prints the table of --explain, because that handler was
    // registered earlier, and exit handlers run in reverse order.
    std::atexit([] {
      if (::getpid() != owner) return;  // this is a child process made by fork
      active()->launches_.finish_starts();
      active()->memory_.planner()->finish();
      const entered here(active()->cu_, active()->gpus_.context(0));
      active()->clock_.finish();
      active()->tell_gain();
    });
  } catch (const std::exception& e) {
    log(log_level::warn, "hpe run --spread: the program runs on one GPU: {}", e.what());
  }
}

void spreading::before_exit_handlers() noexcept {
  if (spreading* const it = active(); it != nullptr && ::getpid() == owner) it->launches_.finish_starts();
}

void spreading::forget_handles() {
  outdate_launches();  // also at the end, because a thread may have added a launch in the meantime
  launches_.forget_handles([&](const spread::kernel_model& gone) { memory_.planner()->forget(gone); });
  outdate_launches();
}

// The analysis of a kernel finds the arrays that the kernel uses, unless the kernel reads pointers from memory. Without
// this analysis, HPE_SCOPE decides.
void spreading::describe_uses(const program_launch& what, decided& how) const {
  if (how.leads_nowhere || !how.kernel->finds_memory(how.parameters)) {
    how.writes_anything = true;
    how.use = memory_.use_of_unknown([&] { return words_of(cu_, what); });
    return;
  }
  memory_.objects().add_textures(how.use);
}

std::string spreading::find_arrays(decided& how, driver_arrays* others) {
  std::string unreachable;
  const std::vector<spread::kernel_model::pointer>& pointers = how.kernel->code->model->pointers();
  how.use.accesses.reserve(pointers.size());
  for (const spread::kernel_model::pointer& p : pointers) {
    const CUdeviceptr address = pointer_in(how.parameters, p.offset);
    if (const auto object = memory_.objects().find(address)) {
      how.use.add(*object, p.is_written ? HPE_INOUT : HPE_IN);
    } else if (memory_.may_own(address)) {
      how.leads_nowhere = true;
      unreachable = "it has a pointer that is in no allocation";
    } else if (others == nullptr) {
      continue;
    } else if (auto found = others_.describe(address, unreachable)) {
      how.may_use_pool |= found->of_pool;
      others->emplace_back(address, std::move(found));
    }
  }
  return unreachable;
}

std::vector<const void*> spreading::arrays_of(const program_launch& what, const decided& how) const {
  const part_kernel& kernel = *how.kernel;
  std::vector<CUdeviceptr> words;
  if (kernel.code == nullptr || how.parameters.empty()) {
    words = words_of(cu_, what).value_or(words);
  } else {
    for (const spread::kernel_model::pointer& p : kernel.code->model->pointers())
      words.push_back(pointer_in(how.parameters, p.offset));
  }
  return arrays_at(words);
}

std::vector<const void*> spreading::arrays_at(const std::vector<CUdeviceptr>& words) const {
  std::vector<const void*> arrays;
  for (const program_object& array : memory_.objects().find_all(words))
    arrays.push_back(reinterpret_cast<const void*>(array.base));  // NOLINT(performance-no-int-to-ptr)
  return arrays;
}

// Does not report launches of one block: they use only a small part of their arrays, so moving the arrays would not
// pay.
void spreading::stays(const program_launch& what, decided& how, std::string_view reason) {
  if (clock_.explains()) how.plan.reason = reason;
  if (counts_stays(memory_) && blocks_of(what) > 1) memory_.planner()->stays(arrays_of(what, how));
}

void spreading::uses(const std::vector<CUdeviceptr>& words) {
  if (counts_stays(memory_)) memory_.planner()->stays(arrays_at(words));
}

std::shared_ptr<const part_kernel> spreading::kernel_of(const program_launch& what) {
  return options_.calibration == calibration_use::on ? launches_.kernel_if_analysed(what.function)
                                                     : launches_.kernels().of(what.function);
}

spreading::decided spreading::decide(const program_launch& what, const known_launches::finding* known) {
  decided how;
  how.changes = memory_.planner()->changes();
  how.kernel = kernel_of(what);
  const part_kernel& kernel = *how.kernel;
  std::string_view reason = kernel.obstacle;
  if (reason.empty() && what.obstacle != nullptr) reason = what.obstacle;
  if (reason.empty() && blocks_of(what) <= 1) reason = "its grid is one block";
  // The driver refuses a launch with an impossible grid or block, which spread::launch cannot describe.
  spread::launch shape{what.grid, what.block};
  if (!shape.is_possible()) return how;
  if (kernel.code == nullptr) {
    note_machine_code();
    stays(what, how, reason);
    how.same_for = kernel.is_awaited ? 0 : always;
    return how;
  }
  const spread::kernel_model& model = *kernel.code->model;
  how.parameters = parameters_of(*model.analysis().kernel, what);
  if (how.parameters.empty() && model.analysis().kernel->formals_size > 0) {
    stays(what, how, "its launch passes no parameters");
    return how;
  }
  driver_arrays others;
  how.may_use_pool = model.finds_pointers();
  // If the launch cannot be spread, and no array needs to come home, the planner has nothing to decide.
  if (!reason.empty() && !counts_stays(memory_) && !oversubscribed::wanted()) {
    (void)find_arrays(how, nullptr);
    stays(what, how, reason);
    how.same_for = always;
    return how;
  }
  shape.parameters = how.parameters.data();
  shape.parameter_bytes = how.parameters.size();
  if (reason.empty() && needs_no_decision(known, how.changes)) {
    (void)find_arrays(how, nullptr);
    how.same_for = known->same_for == always ? always : known->same_for - 1;
    return how;
  }
  how.unreachable = find_arrays(how, &others);
  if (reason.empty()) reason = how.unreachable;
  if (reason.empty()) reason = launches_.obstacle();
  const bool may_spread = reason.empty();
  // The planner itself knows only the obstacle that the analysis has found (model.obstacle()). If there is any other
  // obstacle, the planner must not plan the launch. The launch is only reported to the planner, which may move the
  // launch's arrays to the first GPU.
  if (!may_spread && model.obstacle().empty()) {
    stays(what, how, reason);
    return how;
  }
  if (options_.spread_cut == cut_method::even) {
    if (may_spread) how.plan.parts = spread::cut_evenly(what.grid, gpus_.count()).parts;
    return how;
  }
  const auto foreign = [&](const void* pointer) -> const spread::kernel_array* {
    const auto found =
        std::ranges::find(others, reinterpret_cast<CUdeviceptr>(pointer), &driver_arrays::value_type::first);
    return found == others.end() ? nullptr : &found->second->what;
  };
  // If loads_ahead is false, the first launch in parts loads the code itself, so that a measurement does not depend on
  // another thread.
  const bool loads_ahead = may_spread && options_.calibration == calibration_use::on;
  const std::optional<spread::start_cost> start = loads_ahead ? launches_.start_of(kernel) : std::nullopt;
  how.plan = memory_.planner()->decide(model, shape, foreign, start ? &*start : nullptr);
  how.same_for = may_spread ? how.plan.same_for : 0;
  if (how.plan.wants_start) launches_.start(how.kernel);
  if (!may_spread && clock_.explains()) how.plan.reason = reason;
  if (!may_spread || devices_of(how.plan) < 2) how.plan.parts.clear();
  return how;
}

void spreading::stays_alone(decided& how, const std::string& reason) {
  log(log_level::info, "kernel {} runs on one GPU: {}", how.kernel->name, reason);
  how.plan.reason = reason;
  how.plan.parts.clear();
}

// To be called before the measurement of the launch begins, because loading code and sharing a pool take a long time.
void spreading::load(const program_launch& what, decided& how) {
  if (how.plan.parts.empty()) return;
  try {
    how.functions = launches_.load(how.kernel, what);
    if (const std::string refusal = how.may_use_pool ? others_.share_pool() : std::string(); !refusal.empty())
      stays_alone(how, refusal);
  } catch (const error& e) {
    stays_alone(how, e.what());
  }
}

CUresult spreading::launch_decided(const program_launch& what, const oversubscribed::stream_place& where, decided& how,
                                   function_ref<CUresult()> alone, oversubscribed::repeatable* again) {
  CUresult result = CUDA_SUCCESS;
  if (!how.plan.parts.empty()) {
    try {
      // queue() fails, for example, if the patched kernel needs more registers than the GPU has for a block of this
      // size.
      if (launches_.queue(what, where, {*how.kernel, how.functions, how.parameters, how.plan.parts, how.plan.replacing},
                          how.use, result))
        return result;
      stays_alone(how, cu_.words_for(result));
    } catch (const error& e) {
      stays_alone(how, e.what());
    }
  }
  try {
    return memory_.try_run(where, what.stream, how.use, alone, again);
  } catch (const error& e) {
    if (e.status() != HPE_ERROR_OUT_OF_MEMORY) throw;
    if (how.use.everything && oversubscribed::wanted() && !memory_.may_evict()) {
      memory_.outgrow();
      describe_uses(what, how);  // now finds less than everything
      return launch_decided(what, where, how, alone, again);
    }
    if (how.may_use_pool && how.unreachable.empty()) how.unreachable = others_.share_pool();
    return launches_.queue_beyond_memory(what, where, how.use, e.what(), how.unreachable, alone, alone);
  }
}

// If a report to the planner can have an effect (counts_stays), the launch is not repeated, but decided again.
std::optional<CUresult> spreading::repeat(const program_launch& what, known_launches::finding& known,
                                          function_ref<CUresult()> alone) {
  if (!needs_no_decision(&known, memory_.planner()->changes())) return std::nullopt;
  const std::optional<CUresult> result = repeat_submission(what, known, alone);
  if (result && known.same_for != always) --known.same_for;
  return result;
}

bool spreading::needs_no_decision(const known_launches::finding* known, std::uint64_t changes) const {
  return known != nullptr && known->same_for > 0 && known->changes == changes && !counts_stays(memory_);
}

std::optional<CUresult> spreading::repeat_submission(const program_launch& what, known_launches::finding& known,
                                                     function_ref<CUresult()> alone) {
  const std::optional<CUresult> result = memory_.repeat(known.submission, what.stream, alone);
  if (result && known.writes_anything) driver_writes::count();
  return result;
}

// The launch is already queued, so lack of host memory must not make the program's call fail.
void spreading::note_known(known_launches& launches, const program_launch& what, const decided& how,
                           const oversubscribed::repeatable& submission) noexcept {
  // hpe looks for the arrays of an unknown kernel in all its parameters, unless the kernel uses everything.
  if (how.writes_anything && !how.use.everything) return;
  try {
    const part_kernel& kernel = *how.kernel;
    launches.add(what, kernel.code != nullptr ? kernel.code->model.get() : nullptr,
                 {how.changes, how.same_for, how.writes_anything, submission});
  } catch (const std::bad_alloc&) {
  }
}

CUresult spreading::launch(const program_launch& what, function_ref<CUresult()> alone) noexcept {
  try {
    known_launches* const launches = may_know_ ? known_launches::of_thread() : nullptr;
    const std::uint64_t version = version_of_launches_.load(std::memory_order_acquire);
    known_launches::finding* const known = launches != nullptr ? launches->find(what, version) : nullptr;
    const bool may_repeat = known != nullptr && known->same_for > 0;
    if (may_repeat) {
      keep_pace(what);
      if (const auto result = repeat(what, *known, alone)) return *result;
    }
    std::optional<oversubscribed::stream_place> where;
    if (const CUresult result = memory_.find_place(what.stream, where); result != CUDA_SUCCESS) return result;
    if (!where) return alone();
    const bool is_own = where->context == gpus_.context(0) && !where->captured;
    decided how;
    if (is_own) {
      if (!may_repeat) keep_pace(what);
      how = decide(what, known);
    } else {
      how.kernel = kernel_of(what);
    }
    const bool is_timed = is_own && (clock_.explains() || how.plan.measured.record != nullptr);
    const bool is_early = is_own && (how.plan.is_early || how.kernel->is_awaited);
    const bool is_plain = launches != nullptr && is_own && how.plan.parts.empty() && !is_timed && !is_early;
    if (is_plain && known != nullptr) {
      if (const auto result = repeat_submission(what, *known, alone)) {
        known->changes = how.changes;
        known->same_for = how.same_for;
        return *result;
      }
    }
    describe_uses(what, how);
    load(what, how);
    // Copies the strings before the launch, because the call must not fail for lack of host memory after the launch has
    // been queued.
    launch_clock::timed_launch told;
    if (is_timed || !is_own) told.kernel = how.kernel->name;
    if (!is_own) told.reason = "its launch is captured, or runs in another context";
    CUevent const begun = is_timed ? clock_.begins(what.stream) : nullptr;
    oversubscribed::repeatable submission;
    const CUresult result = launch_decided(what, *where, how, alone, is_plain ? &submission : nullptr);
    if (is_plain && result == CUDA_SUCCESS) note_known(*launches, what, how, submission);
    if (is_early) pace_.queued(what.stream);
    if (how.writes_anything && !where->captured) driver_writes::count();
    if (is_timed) {
      const auto devices = static_cast<unsigned>(std::max<std::ptrdiff_t>(devices_of(how.plan), 1));
      // If the launch did not run as planned (spread or on one GPU), the planner does not use its time.
      if ((devices > 1) != (how.plan.measured.how == spread::launch_way::spread)) how.plan.measured = {};
      told.reason = std::move(how.plan.reason);
      told.devices = devices;
      told.measured = std::move(how.plan.measured);
      clock_.ends(begun, what.stream, std::move(told));
    } else if (!is_own) {
      clock_.counts(told);
    }
    return result;
  } catch (const std::exception& e) {
    return memory_.refused(e);
  }
}

}  // namespace hpe::cuda_hooks
