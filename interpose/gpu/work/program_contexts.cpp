#include "interpose/gpu/work/program_contexts.h"

#include <algorithm>
#include <utility>

#include "interpose/gpu/work/device_range.h"

namespace hpe::cuda_hooks {

using device::cuda::entered;

void program_contexts::add(CUcontext context) {
  const lock_guard lock(mutex_);
  made_.push_back(context);
  one_.store(false, std::memory_order_release);
}

void program_contexts::retained(CUcontext primary) {
  const lock_guard lock(mutex_);
  if (first_ == nullptr) first_ = primary;
  if (first_ != primary) one_.store(false, std::memory_order_release);
}

std::vector<CUcontext> program_contexts::made() const {
  const lock_guard lock(mutex_);
  return made_;
}

void program_contexts::remove(CUcontext context) {
  const lock_guard lock(mutex_);
  std::erase(made_, context);
}

CUcontext program_contexts::retain_active(CUdevice device) const {
  unsigned flags = 0;
  int active = 0;
  CUcontext context = nullptr;
  const bool is_retained = cu_.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && active != 0 &&
                           cu_.cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS;
  return is_retained ? context : nullptr;
}

CUcontext program_contexts::primary_of(CUdevice device) const {
  CUcontext const context = retain_active(device);
  if (context != nullptr) cu_.cuDevicePrimaryCtxRelease(device);
  return context;
}

void program_contexts::add_green(CUgreenCtx green) {
  one_.store(false, std::memory_order_release);
  CUcontext context = nullptr;
  if (cu_.cuCtxFromGreenCtx == nullptr || cu_.cuCtxFromGreenCtx(&context, green) != CUDA_SUCCESS) return;
  {
    const lock_guard lock(mutex_);
    green_[green] = context;
  }
  add(context);
}

void program_contexts::remove_green(CUgreenCtx green) {
  CUcontext context = nullptr;
  {
    const lock_guard lock(mutex_);
    const auto found = green_.find(green);
    if (found == green_.end()) return;
    context = found->second;
    green_.erase(found);
  }
  remove(context);
}

int program_contexts::begins_capture(CUstream stream) {
  CUcontext context = nullptr;
  if (cu_.cuStreamGetCtx(stream, &context) != CUDA_SUCCESS) return 0;
  const lock_guard lock(mutex_);
  captured_.emplace_back(stream, context);
  return 1;
}

// The per-thread default streams of several threads have the same handle, so only one entry is removed.
int program_contexts::ends_capture(CUstream stream) {
  const lock_guard lock(mutex_);
  const auto found = std::find_if(captured_.begin(), captured_.end(), [&](const auto& c) { return c.first == stream; });
  if (found == captured_.end()) return 0;
  captured_.erase(found);
  return 1;
}

int program_contexts::forget_captures(CUcontext which) {
  const lock_guard lock(mutex_);
  return static_cast<int>(
      std::erase_if(captured_, [&](const auto& c) { return which == nullptr || c.second == which; }));
}

bool program_contexts::captures(CUcontext context) const {
  const lock_guard lock(mutex_);
  return std::any_of(captured_.begin(), captured_.end(), [&](const auto& c) { return c.second == context; });
}

CUresult program_contexts::wait_for_all(CUcontext also) {
  CUresult first = CUDA_SUCCESS;
  std::vector<CUcontext> done;
  const auto wait_in = [&](CUcontext context) {
    if (std::find(done.begin(), done.end(), context) != done.end()) return;
    done.push_back(context);
    const entered here(cu_, context);
    const CUresult result = captures(context) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : cu_.cuCtxSynchronize();
    if (first == CUDA_SUCCESS) first = result;
  };
  for_each_primary([&](int, CUcontext context) { wait_in(context); });
  for (const CUcontext context : made()) wait_in(context);
  wait_in(also);
  return first;
}

CUresult program_contexts::wait_for(CUstream stream, CUcontext context) {
  const entered here(cu_, context);
  return captures(context) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : cu_.cuStreamSynchronize(stream);
}

std::optional<program_allocation> program_contexts::device_memory_at(CUdeviceptr address) const {
  std::optional<program_allocation> found;
  const auto look = [&](int device, CUcontext primary) {
    if (found) return;
    const entered here(cu_, primary);
    int owner = -1;
    const auto range = device_range_at(cu_, address);
    if (!range || cu_.cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) != CUDA_SUCCESS)
      return;
    program_allocation a{range->base, range->bytes, nullptr};
    if (cu_.cuPointerGetAttribute(&a.context, CU_POINTER_ATTRIBUTE_CONTEXT, address) != CUDA_SUCCESS)
      a.context = nullptr;
    // Memory of pools and mapped memory belongs to no context; hpe copies this memory in the primary context of its
    // device.
    if (a.context == nullptr && owner == device) a.context = primary;
    if (a.context != nullptr) found = a;
  };
  for_each_primary(look);
  constexpr int none = -2;
  if (!found)
    for (const CUcontext context : made()) look(none, context);
  return found;
}

std::size_t program_contexts::size_at(CUdeviceptr address) const {
  std::size_t result = 0;
  const auto ask = [&] {
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    if (cu_.cuMemGetAddressRange(&base, &bytes, address) == CUDA_SUCCESS && base == address) result = bytes;
  };
  ask();
  // The calling thread may have no current context; then the query is repeated in all contexts of the program.
  if (result == 0)
    for_each_primary([&](int, CUcontext context) {
      const entered here(cu_, context);
      if (result == 0) ask();
    });
  if (result == 0)
    for (const CUcontext context : made()) {
      const entered here(cu_, context);
      if (result == 0) ask();
    }
  return result;
}

}  // namespace hpe::cuda_hooks
