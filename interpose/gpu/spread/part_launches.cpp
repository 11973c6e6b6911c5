#include "interpose/gpu/spread/part_launches.h"

#include <cstring>
#include <utility>

#include "interpose/gpu/spread/known_launches.h"
#include "interpose/gpu/work/driver_writes.h"
#include "interpose/gpu/work/enqueue_guard.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/core/operations/parts_in_time.h"
#include "runtime/trace/refusals.h"

namespace hpe::cuda_hooks {

namespace {

// Does not return OUT_OF_MEMORY: the program could conclude that nothing has run, and repeat the launch.
CUresult incomplete(const part_kernel& kernel, std::size_t queued, std::size_t parts, const std::string& why) {
  trace::refusals::add();
  log(log_level::error, "{}", core::words_for_incomplete_launch(kernel.name, queued, parts, why));
  return CUDA_ERROR_LAUNCH_FAILED;
}

program_use use_of(const core::part_in_time& part) {
  program_use result;
  result.accesses = part.accesses;
  result.rows = part.rows;
  return result;
}

}  // namespace

// A pointer into the gap between two allocations may lead to any hpe memory. For example, programs that count from 1
// pass the address before an array.
std::optional<program_use> part_launches::find_use(const program_launch& what) {
  const std::shared_ptr<const part_kernel> kernel = kernels_.of(what.function);
  if (kernel->code == nullptr) return std::nullopt;
  const spread::kernel_model& model = *kernel->code->model;
  const std::vector<std::byte> parameters = parameters_of(*model.analysis().kernel, what);
  if (!kernel->finds_memory(parameters)) return std::nullopt;
  program_use result;
  std::vector<spread::kernel_array> arrays(model.pointers().size());
  std::vector<const spread::kernel_array*> of_pointers(arrays.size());
  for (std::size_t n = 0; n < arrays.size(); ++n) {
    const spread::kernel_model::pointer& p = model.pointers()[n];
    const CUdeviceptr address = pointer_in(parameters, p.offset);
    if (const auto object = memory_.objects().find(address)) {
      result.add(*object, p.is_written ? HPE_INOUT : HPE_IN);
      arrays[n].address = object->base;
      arrays[n].bytes = object->bytes;
      arrays[n].version = object->number;
      of_pointers[n] = &arrays[n];
    } else if (memory_.may_own(address)) {
      return std::nullopt;
    }
  }
  if (const auto bytes =
          footprints_.find(model, {what.grid, what.block, parameters.data(), parameters.size()}, of_pointers)) {
    result.accesses.clear();
    for (const spread::used_bytes& each : *bytes) {
      auto* const first =
          reinterpret_cast<std::byte*>(arrays[each.pointer].address);  // NOLINT(performance-no-int-to-ptr)
      result.accesses.push_back({first + each.first, each.last - each.first, core::mode_of(each)});
    }
  }
  memory_.objects().add_textures(result);
  return result;
}

void part_launches::forget_handles(const std::function<void(const spread::kernel_model&)>& forgotten) {
  kernels_.forget_handles(forgotten);
  footprints_.forget();
}

bool part_launches::queue(const program_launch& what, const cut_launch& how, program_use use, CUresult& result,
                          run_parts run) {
  const std::uint64_t written = driver_writes::counted();
  std::vector<std::vector<std::byte>> bytes;
  std::vector<unsigned> others;
  std::size_t parts = 0, queued = 0;
  for (unsigned n = 0; n < gpus_.count(); ++n) {
    std::vector<std::byte>& own = bytes.emplace_back(
        ptx::patch::with_part(how.kernel.code->patched, how.parameters, {how.blocks[n].first, what.grid}));
    if (how.blocks[n].blocks() == 0) continue;
    ++parts;
    if (n > 0) others.push_back(n);
    if (how.replacing.empty()) continue;
    for (const core::launch_planner::replaced_pointer& copy : how.replacing[n]) {
      std::memcpy(own.data() + copy.offset, &copy.pointer, sizeof copy.pointer);
      use.accesses.push_back({copy.pointer, 0, HPE_IN});
    }
  }
  const auto queue = [&](unsigned n, CUstream stream) {
    const spread::subgrid& part = how.blocks[n];
    if (part.blocks() == 0) return CUDA_SUCCESS;
    kernels_.bring_constants(how.kernel, n, stream, written);
    std::size_t size = bytes[n].size();
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, bytes[n].data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    const CUresult launched =
        cu_.cuLaunchKernel(how.functions[n], part.count[0], part.count[1], part.count[2], what.block[0], what.block[1],
                           what.block[2], what.shared_bytes, stream, nullptr, extra);
    if (launched == CUDA_SUCCESS) ++queued;
    return launched;
  };
  try {
    result = run(others, use, queue);
  } catch (const std::exception& e) {
    if (queued == 0) throw;
    result = incomplete(how.kernel, queued, parts, e.what());
    return true;
  }
  if (result != CUDA_SUCCESS && queued > 0) result = incomplete(how.kernel, queued, parts, cu_.words_for(result));
  return queued > 0 || result == CUDA_SUCCESS;
}

bool part_launches::queue(const program_launch& what, const oversubscribed::stream_place& where, const cut_launch& how,
                          program_use use, CUresult& result) {
  const auto run = [&](std::span<const unsigned> others, const program_use& memory,
                       function_ref<CUresult(unsigned, CUstream)> part) {
    return memory_.run_parts(where, what.stream, others, memory, part);
  };
  return queue(what, how, std::move(use), result, run);
}

void part_launches::share_memory() {
  if (gpus_.count() > 1)
    std::call_once(shares_, [&] {
      try {
        for (unsigned n = 1; n < gpus_.count(); ++n) memory_.start_gpu(n);
        gpus_.share_driver_memory();
      } catch (const error& e) {
        no_sharing_ = e.what();
        cannot_share_.store(true, std::memory_order_release);
        log(log_level::warn, "hpe run --spread: the program runs on one GPU: {}", e.what());
      }
    });
}

std::optional<spread::start_cost> part_launches::start_of(const part_kernel& kernel) {
  if (cannot_start_.load(std::memory_order_acquire) || kernels_.is_loaded(kernel)) return std::nullopt;
  return spread::start_cost_of_gpus(kernel.bytes_of_patched(), gpus_.count() - 1);
}

// If the driver refuses a context, share_memory() logs the reason.
void part_launches::start_gpus() noexcept {
  try {
    for (unsigned n = 1; n < gpus_.count() && !is_ending_.load(); ++n) memory_.start_gpu(n);
  } catch (const std::exception&) {
  }
}

void part_launches::start(const std::shared_ptr<const part_kernel>& kernel) {
  if (is_starting_.exchange(true)) return;
  const auto load = [this, kernel] {
    start_gpus();
    if (!is_ending_.load()) share_memory();
    if (!is_ending_.load()) kernels_.load_ahead(*kernel);
    is_starting_.store(false, std::memory_order_release);
  };
  // If the thread cannot run, launches load the code themselves, except at the end of the process.
  if (!code_thread_.post(load) && !is_ending_.load()) cannot_start_.store(true, std::memory_order_release);
}

void part_launches::finish_starts() noexcept {
  // A signal handler may end the process while this thread waits.
  static thread_local bool is_waiting = false;
  if (std::exchange(is_waiting, true)) return;
  is_ending_.store(true);
  std::call_once(ends_, [this] { code_thread_.finish(); });
  is_waiting = false;
}

std::vector<CUfunction> part_launches::load(const std::shared_ptr<const part_kernel>& kernel,
                                            const program_launch& what) {
  share_memory();
  HPE_REQUIRE(obstacle().empty(), HPE_ERROR_NOT_SUPPORTED, "{}", obstacle());
  return kernels_.load(kernel, what.function, what.shared_bytes);
}

part_launches::division part_launches::examine(const program_launch& what, const oversubscribed::stream_place& where,
                                               const std::string& unreachable) {
  division how;
  how.kernel = kernels_.of(what.function);
  const spread::module_model::kernel* const code = how.kernel->code;
  how.obstacle = how.kernel->obstacle.empty() ? unreachable : how.kernel->obstacle;
  if (code != nullptr) how.parameters = parameters_of(*code->model->analysis().kernel, what);
  if (code != nullptr && code->patched.uses_variables) how.obstacle = "it uses variables of its program (__device__)";
  if (what.obstacle != nullptr) how.obstacle = what.obstacle;
  const bool has_parameters = code != nullptr && spread::launch{what.grid, what.block}.is_possible() &&
                              how.parameters.size() == code->model->analysis().kernel->formals_size;
  if (!has_parameters && how.obstacle.empty()) how.obstacle = "its launch gives no parameters";
  if (where.captured) how.obstacle = "it is captured in a graph";
  if (where.context != gpus_.context(0)) how.obstacle = "it runs in a context that the program has made";
  how.is_known = has_parameters && !where.captured && where.context == gpus_.context(0);
  return how;
}

CUresult part_launches::queue_beyond_memory(const program_launch& what, const oversubscribed::stream_place& where,
                                            const program_use& use, const std::string& refusal,
                                            const std::string& unreachable, function_ref<CUresult()> whole,
                                            function_ref<CUresult()> alone) {
  using core::zero_copy_trial;
  const division how = examine(what, where, unreachable);
  std::optional<zero_copy_trial::key> tried;
  if (memory_.has_zero_copy() && !where.captured && !use.everything && !use.follows_pointers)
    tried = zero_copy_trial::key_of(what.function, what.grid, use.accesses, memory_.allocations());
  const auto with_zero_copy = [&] { return queue_with_zero_copy(what, where, how, use, {}, whole); };
  if (const auto done = trial_.try_zero_copy(tried, memory_.allocations(), with_zero_copy)) return *done;
  try {
    std::size_t count = 0;
    const CUresult result = queue_in_time(what, where, how, refusal, alone, count);
    if (count == 1) trial_.stay_in_parts(tried);
    return result;
  } catch (const error& no_parts) {
    if (no_parts.status() != HPE_ERROR_OUT_OF_MEMORY) throw;
    trial_.stay_in_parts(tried);
    return queue_with_zero_copy(what, where, how, use, no_parts.what(), whole);
  }
}

// Each GPU accesses data in host memory over its own link.
CUresult part_launches::queue_with_zero_copy(const program_launch& what, const oversubscribed::stream_place& where,
                                             const division& how, const program_use& use, const std::string& refusal,
                                             function_ref<CUresult()> whole) {
  std::vector<spread::subgrid> blocks;
  std::vector<CUfunction> functions;
  if (gpus_.count() > 1 && how.is_known && how.obstacle.empty() && !use.everything && !use.follows_pointers &&
      (!how.kernel->has_atomics || memory_.have_host_atomics())) {
    try {
      functions = load(how.kernel, what);
      blocks = spread::cut_evenly(what.grid, gpus_.count()).parts;
    } catch (const error& e) {
      log(log_level::info, "kernel {} runs on one GPU: {}", how.kernel->name, e.what());
    }
  }
  if (!blocks.empty())
    log(log_level::info, "kernel {} runs on {} GPUs with data in host memory", how.kernel->name, gpus_.count());
  return memory_.run_with_zero_copy(use, refusal, [&](const program_use& its) {
    CUresult result = CUDA_SUCCESS;
    if (!blocks.empty() && queue(what, where, {*how.kernel, functions, how.parameters, blocks, {}}, its, result))
      return result;
    return memory_.try_run(where, what.stream, its, whole);
  });
}

CUresult part_launches::queue_in_time(const program_launch& what, const oversubscribed::stream_place& where,
                                      const division& how, const std::string& refusal, function_ref<CUresult()> alone,
                                      std::size_t& count) {
  HPE_REQUIRE(how.is_known, HPE_ERROR_OUT_OF_MEMORY, "{}; the launch cannot run in parts one after the other: {}",
              refusal, how.obstacle);
  const part_kernel& kernel = *how.kernel;
  const spread::launch shape{what.grid, what.block, how.parameters.data(), how.parameters.size()};
  const std::vector<core::part_in_time> parts =
      memory_.cut_in_time(*kernel.code->model, shape, gpus_.count(), how.obstacle, refusal);
  count = parts.size();
  if (parts.size() == 1) return memory_.try_run(where, what.stream, use_of(parts.front()), alone);
  std::vector<CUfunction> functions;
  try {
    functions = load(how.kernel, what);
  } catch (const error& e) {
    HPE_THROW(HPE_ERROR_OUT_OF_MEMORY, "{}; the launch cannot run in parts one after the other: {}", refusal, e.what());
  }
  oversubscribed::sequence all(memory_, where.device);
  std::size_t queued = 0;
  try {
    for (const core::part_in_time& part : parts) {
      const auto run = [&](std::span<const unsigned> others, const program_use& memory,
                           function_ref<CUresult(unsigned, CUstream)> own) {
        return all.run_parts(where, what.stream, others, memory, own);
      };
      CUresult result = CUDA_SUCCESS;
      const bool is_begun =
          queue(what, {kernel, functions, how.parameters, part.blocks, {}}, use_of(part), result, run);
      if (result != CUDA_SUCCESS)
        return is_begun || queued == 0 ? result : incomplete(kernel, queued, parts.size(), cu_.words_for(result));
      ++queued;
    }
  } catch (const std::exception& e) {
    if (queued == 0) throw;
    return incomplete(kernel, queued, parts.size(), e.what());
  }
  return CUDA_SUCCESS;
}

launches_of_devices::one::one(const device::cuda::driver& cu, oversubscribed& memory, CUdevice device)
    : gpu(cu, device), launches(cu, gpu, memory) {
  gpu.enter();
}

part_launches& launches_of_devices::of(const device::cuda::driver& cu, oversubscribed& memory, unsigned device) {
  const lock_guard lock(mutex_);
  return all_.try_emplace(device, cu, memory, memory.ordinal_of(device)).first->second.launches;
}

CUresult launches_of_devices::launch(const device::cuda::driver& cu, oversubscribed& memory, const program_launch& what,
                                     function_ref<program_use()> assumed, function_ref<CUresult()> whole,
                                     function_ref<CUresult()> alone) {
  try {
    known_launches* const launches = known_launches::of_thread();
    oversubscribed::repeatable* const latest =
        launches != nullptr ? &launches->unknown_on(what.stream).submission : nullptr;
    const bool all_fits = !memory.may_evict();
    if (latest != nullptr && all_fits)
      if (const auto result = memory.repeat(*latest, what.stream, whole)) return *result;
    std::optional<oversubscribed::stream_place> where;
    if (const CUresult result = memory.find_place(what.stream, where); result != CUDA_SUCCESS) return result;
    if (!where) return whole();
    // As long as all data fits, hpe needs no analysis of the kernels. A captured launch does not run on its stream.
    std::optional<program_use> found;
    if (!all_fits && !where->captured) found = of(cu, memory, where->device).find_use(what);
    const program_use use = found ? std::move(*found) : assumed();
    try {
      return memory.try_run(*where, what.stream, use, whole, use.everything && !where->captured ? latest : nullptr);
    } catch (const error& e) {
      if (e.status() != HPE_ERROR_OUT_OF_MEMORY) throw;
      if (all_fits) {
        memory.outgrow();
        return launch(cu, memory, what, assumed, whole, alone);
      }
      const enqueue_guard work(what);
      if (work.failed()) return work.result();
      part_launches& launches = of(cu, memory, where->device);
      driver_writes::count();  // hpe does not record which launches write memory of the driver
      return launches.queue_beyond_memory(what, *where, use, e.what(), {}, whole, alone);
    }
  } catch (const std::exception& e) {
    return memory.refused(e);
  }
}

void launches_of_devices::forget_handles() {
  const lock_guard lock(mutex_);
  for (auto& [device, its] : all_) its.launches.forget_handles([](const spread::kernel_model&) {});
}

}  // namespace hpe::cuda_hooks
