// How a launch of the program runs: it is decided (runtime/spread), arrays move, and parts are queued. All under one
// mutex. An array that moves has no memory for a while, so a move waits until no thread is queuing other work. It waits
// without the mutex, which the other threads may need, so launches of theirs may come between a decision and its moves.
// It also waits for the work of contexts that the program has made itself, which may use the array.
//
// Order: the other GPUs' streams wait for the program's stream, and the program's stream waits for their parts. So work
// that the program queues before and behind the launch is before and behind all parts.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>

#include "interpose/cuda/adopted/adopted_memory.h"
#include "interpose/cuda/spread/spreading.h"
#include "interpose/cuda/work/program_contexts.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace hpe::cuda_hooks {

using device::cuda::entered;

namespace {

/// The parameters as the kernel has them; nothing if the launch does not give all.
std::vector<std::byte> parameters_of(const ptx::function& kernel, const spread_launch& what) {
  std::vector<std::byte> all(kernel.formals_size);
  if (what.extra != nullptr) {
    const void* block = nullptr;
    std::size_t bytes = 0;
    for (void** each = what.extra; *each != CU_LAUNCH_PARAM_END; each += 2) {
      if (each[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) block = each[1];
      if (each[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) bytes = *static_cast<const std::size_t*>(each[1]);
    }
    if (block == nullptr || bytes < all.size()) return {};
    std::memcpy(all.data(), block, all.size());
    return all;
  }
  if (what.parameters == nullptr) return {};
  for (std::size_t n = 0; n < kernel.formals.size(); ++n) {
    if (what.parameters[n] == nullptr) return {};
    std::memcpy(all.data() + kernel.formals[n].offset, what.parameters[n], kernel.formals[n].size);
  }
  return all;
}

// Ends the lane of the stream that a thread has for itself. The process ends with its main thread; the only thread of a
// child of fork is a main thread, too, and could wait for ever for a lock.
struct end_of_thread {
  ~end_of_thread() {
    if (::gettid() != ::getpid()) spreading::active()->ends_stream(CU_STREAM_PER_THREAD);
  }
};

CUdeviceptr pointer_in(const std::vector<std::byte>& parameters, std::uint32_t offset) {
  CUdeviceptr pointer = 0;
  if (offset + sizeof pointer <= parameters.size()) std::memcpy(&pointer, parameters.data() + offset, sizeof pointer);
  return pointer;
}

}  // namespace

spreading::decided spreading::decide(part_kernel& kernel, const spread_launch& what,
                                     std::vector<std::byte>& parameters) {
  decided how;
  how.reason = kernel.obstacle;
  if (how.reason.empty() && what.obstacle != nullptr) how.reason = what.obstacle;
  if (how.reason.empty() && what.grid[0] * std::uint64_t{what.grid[1]} * what.grid[2] <= 1)
    how.reason = "its grid is one block";
  // The driver refuses these, and they have no place in a model.
  const bool runs =
      std::ranges::none_of(what.grid, std::logical_not<>()) && std::ranges::none_of(what.block, std::logical_not<>());
  if (kernel.code == nullptr || !runs) return how;
  const spread::kernel_model& model = *kernel.code->model;
  parameters = parameters_of(*model.analysis().kernel, what);
  if (parameters.empty() && model.analysis().kernel->formals_size > 0) {
    how.reason = "its launch gives no parameters";
    return how;
  }
  // Copies need waits, which captures do not survive; and CPU code writes memory that it has touched unseen.
  const bool is_capturing = program_.captures(context());
  used_.begin(!is_capturing && !adopted_memory::any());
  std::vector<const spread::allocation*> arrays;
  std::string unreachable;
  for (const spread::kernel_model::pointer& p : model.pointers())
    arrays.push_back(used_.describe(pointer_in(parameters, p.offset), unreachable));
  if (how.reason.empty()) how.reason = unreachable;
  const bool may_spread = how.reason.empty();
  // The arrays of a kernel that stays may have to come to its GPU. The decision tells only of kernels with an obstacle
  // of the analysis that they stay.
  if (!may_spread && model.obstacle().empty()) return how;
  if (cuts_evenly_) {
    if (may_spread) how.parts = spread::cut_evenly(what.grid, gpus_.count()).parts;
    return how;
  }
  const spread::decision& d =
      planner_.decide(model, {what.grid, what.block, parameters.data(), parameters.size()}, arrays);
  using kind = spread::placement::kind;
  for (std::uint32_t n = 0; n < arrays.size(); ++n) {
    if (arrays[n] == nullptr) continue;
    if (d.arrays[n].use_replica) {
      how.copied.push_back(n);
    } else if (const spread::placement& to = d.arrays[n].move_to;
               to.how != kind::stay && to.how != kind::replicated && !is_capturing) {
      std::vector<spread::home_run> homes = spread::homes_under(to, *arrays[n], gpus_.count());
      const auto is_same = [&](const decided::other_place& p) { return p.base == arrays[n]->address; };
      if (homes != arrays[n]->homes && std::none_of(how.moves.begin(), how.moves.end(), is_same))
        how.moves.push_back({arrays[n]->address, std::move(homes), spread::words_of(to)});
    }
  }
  if (may_spread) how.reason = d.reason;
  if (may_spread && d.is_spread()) how.parts = d.how.parts;
  return how;
}

// A move that fails leaves the array, or a part of it, where it is, which is slower and as right.
void spreading::move(const decided::other_place& to) {
  dealt_memory::range* const r = memory_.find(to.base);
  if (r == nullptr || r->base != to.base || r->extent != to.homes.back().last) return;  // freed meanwhile
  CUresult result = program_.wait_for_all(context());
  const auto begin = std::chrono::steady_clock::now();
  if (result == CUDA_SUCCESS) result = memory_.move(*r, to.homes, !r->is_empty);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  if (result == CUDA_SUCCESS)
    log(log_level::debug, "an array of {} bytes lies {} now, after {:.1f} ms", r->bytes, to.words, took.count());
  if (result != CUDA_SUCCESS)
    log(log_level::info, "an array of a launch over several GPUs stays where it is: {}", cu_.words_for(result));
}

std::string spreading::prepare(part_kernel& kernel, const spread_launch& what, std::shared_ptr<program_lane>& lane) {
  try {
    lane = lanes_.of(what.stream);
  } catch (const error& e) {
    return e.what();
  }
  if (lane == nullptr) return "its stream belongs to another context";
  if (what.stream == CU_STREAM_PER_THREAD) static thread_local const end_of_thread with_this_thread;
  return kernels_.load(kernel, what.function, what.shared_bytes) ? std::string() : kernel.obstacle;
}

// Without a copy the GPU reads the array where it is, which is slower and as right.
void spreading::bring_copies(const part_kernel& kernel, const decided& how, unsigned gpu,
                             const std::shared_ptr<program_lane>& lane, std::vector<std::byte>& parameters) {
  for (const std::uint32_t n : how.copied) {
    const std::uint32_t offset = kernel.code->model->pointers()[n].offset;
    const CUdeviceptr pointer = pointer_in(parameters, offset);
    dealt_memory::range* const r = memory_.find(pointer);
    if (r == nullptr) continue;
    const CUdeviceptr there = copies_.bring(*r, gpu, lane);
    r->has_no_replica |= there == 0;
    if (there == 0) continue;
    const CUdeviceptr own = there + (pointer - r->base);
    std::memcpy(parameters.data() + offset, &own, sizeof own);
  }
}

// Throws hpe::error if nothing runs and the program's own launch may.
CUresult spreading::launch_parts(const part_kernel& kernel, const spread_launch& what,
                                 const std::vector<std::byte>& parameters, const decided& how,
                                 const std::shared_ptr<program_lane>& lane) {
  CUresult result = lane->fork();
  std::vector<std::vector<std::byte>> of_part(gpus_.count());
  for (unsigned n = 0; n < gpus_.count() && result == CUDA_SUCCESS; ++n) {
    of_part[n] = ptx::patch::with_part(kernel.code->patched, parameters, {how.parts[n].first, what.grid});
    if (how.parts[n].blocks() == 0) continue;
    kernels_.bring_constants(kernel, n, lane, writes_elsewhere_);
    bring_copies(kernel, how, n, lane, of_part[n]);
  }
  bool is_begun = false;
  // The program's own GPU comes last: it has nothing to wait for.
  for (unsigned n = gpus_.count(); n-- > 0 && result == CUDA_SUCCESS;) {
    const spread::block_range& part = how.parts[n];
    if (part.blocks() == 0) continue;
    const entered here(cu_, gpus_.context(n));
    std::size_t bytes = of_part[n].size();
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, of_part[n].data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    result = cu_.cuLaunchKernel(kernel.parts[n], part.count[0], part.count[1], part.count[2], what.block[0],
                                what.block[1], what.block[2], what.shared_bytes, lane->stream(n), nullptr, extra);
    // Patched kernels need more registers, of which blocks of many threads may have too few.
    if (!is_begun) cu_.check(result, "launching a part of its grid");
    is_begun = true;
    const bool is_awaited = n > 0 || !how.copied.empty();
    if (result == CUDA_SUCCESS && is_awaited) result = lane->mark(n);
  }
  for (unsigned n = 1; n < gpus_.count() && result == CUDA_SUCCESS; ++n)
    if (how.parts[n].blocks() > 0) result = lane->await(what.stream, n);
  return result;
}

void spreading::note_writes(const part_kernel& kernel, const std::vector<std::byte>& parameters, CUstream stream) {
  if (kernel.code == nullptr || parameters.empty() || kernel.code->model->writes_anywhere())
    return note_any_write(stream);
  for (const spread::kernel_model::pointer& p : kernel.code->model->pointers())
    if (dealt_memory::range* const r = p.is_written ? memory_.find(pointer_in(parameters, p.offset)) : nullptr)
      note_write(*r, stream);
}

CUresult spreading::launch(const spread_launch& what, const std::function<CUresult()>& alone) {
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  if (!is_current() || cu_.cuStreamIsCapturing(what.stream, &capture) != CUDA_SUCCESS ||
      capture != CU_STREAM_CAPTURE_STATUS_NONE) {
    const auto places = keep_places();
    const CUresult result = alone();
    const lock_guard lock(mutex_);
    if (capture == CU_STREAM_CAPTURE_STATUS_NONE) note_any_write(nullptr);
    if (clock_.runs()) clock_.counts(kernels_.of(what.function).name, "it is captured, or runs in another context");
    return result;
  }
  unique_lock lock(mutex_);
  std::vector<std::byte> parameters;
  decided how = decide(kernels_.of(what.function), what, parameters);
  if (!how.moves.empty()) {
    lock.unlock();
    const std::lock_guard no_other_work(places_);
    lock.lock();
    for (const decided::other_place& to : how.moves) move(to);
  }
  part_kernel& kernel = kernels_.of(what.function);
  std::shared_ptr<program_lane> lane;
  if (!how.parts.empty()) {
    if (std::string why = prepare(kernel, what, lane); !why.empty()) {
      how.parts.clear();
      how.reason = std::move(why);
    }
  }
  clock_.begins(what.stream);
  CUresult result = CUDA_SUCCESS;
  if (!how.parts.empty()) {
    try {
      result = launch_parts(kernel, what, parameters, how, lane);
    } catch (const error& e) {
      log(log_level::info, "kernel {} runs on one GPU: {}", kernel.name, e.what());
      how.reason = e.what();
      how.parts.clear();
    }
  }
  if (how.parts.empty()) result = alone();
  const auto devices = std::count_if(how.parts.begin(), how.parts.end(), [](const auto& p) { return p.blocks() > 0; });
  clock_.ends(what.stream, kernel.name, static_cast<unsigned>(std::max<std::ptrdiff_t>(devices, 1)), how.reason);
  note_writes(kernel, parameters, what.stream);
  return result;
}

}  // namespace hpe::cuda_hooks
