// The current context of a thread and the runtime's current device always agree: each change of the thread's context
// stack also sets the runtime's device. If the program has used another device through the runtime since then
// (thread_state::uses_device), follow_runtime() makes a context of that device current.

#include "interpose/soft/libcuda/contexts.h"

#include <utility>

#include "hpe/hpe.h"
#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/device/device_table.h"
#include "interpose/soft/cudart/device/errors.h"
#include "interpose/soft/cudart/device/thread_state.h"
#include "runtime/base/per_thread.h"

namespace hpe::libcuda {

using cudart::check;
using cudart::process;
using cudart::require;
using cudart::this_thread;

namespace {

std::vector<context_table::pointer>& stack() { return per_thread<std::vector<context_table::pointer>>::get(); }

/// To be called after every change of the stack.
void use_device_of_top() {
  if (stack().empty()) return;
  this_thread().device = stack().back()->device();
  check(::hpeSetDevice(this_thread().device));
}

}  // namespace

context_table::of_device& context_table::at(int device) {
  process().devices().require_device(device);
  devices_.resize(static_cast<std::size_t>(process().devices().count()));
  of_device& state = devices_[static_cast<std::size_t>(device)];
  if (state.primary == nullptr) {
    state.primary = std::make_shared<device_context>(device, true, 0, ++made_);
    state.primary->set_active(false);
    known_[handle_of(*state.primary)] = state.primary;
  }
  return state;
}

context_table::pointer context_table::create(int device, unsigned flags) {
  const lock_guard lock(mutex_);
  ++at(device).created;
  auto made = std::make_shared<device_context>(device, false, flags, ++made_);
  known_[handle_of(*made)] = made;
  return made;
}

void context_table::end_of_device(const of_device& state, int device) {
  if (state.created == 0 && state.retained == 0 && !state.runtime_uses) process().reset(device);
}

void context_table::destroy(CUcontext handle) {
  const pointer gone = find(handle);
  require(!gone->is_primary(), cudaErrorDeviceUninitialized);
  process().finish_work();
  if (!stack().empty() && stack().back() == gone) pop();
  const lock_guard lock(mutex_);
  require(known_.erase(handle) == 1, cudaErrorDeviceUninitialized);
  gone->set_active(false);
  of_device& state = at(gone->device());
  --state.created;
  end_of_device(state, gone->device());
}

context_table::pointer context_table::find(CUcontext handle) {
  const lock_guard lock(mutex_);
  const auto found = known_.find(handle);
  require(found != known_.end(), cudaErrorDeviceUninitialized);
  return found->second;
}

context_table::pointer context_table::primary(int device) {
  const lock_guard lock(mutex_);
  return at(device).primary;
}

context_table::pointer context_table::retain_primary(int device) {
  const lock_guard lock(mutex_);
  of_device& state = at(device);
  ++state.retained;
  state.primary->set_active(true);
  return state.primary;
}

void context_table::release_primary(int device) {
  const lock_guard lock(mutex_);
  of_device& state = at(device);
  require(state.retained > 0, cudaErrorDeviceUninitialized);
  if (--state.retained > 0 || state.runtime_uses) return;
  state.primary->set_active(false);
  end_of_device(state, device);
}

void context_table::reset_primary(int device) {
  const lock_guard lock(mutex_);
  of_device& state = at(device);
  state.runtime_uses = false;
  state.primary->set_active(state.retained > 0);
  process().reset(device);
}

void context_table::follow_runtime() {
  const int device = this_thread().device;
  if (!stack().empty() && stack().back()->device() == device) return;
  const lock_guard lock(mutex_);
  of_device& state = at(device);
  state.runtime_uses = true;
  state.primary->set_active(true);
  if (!stack().empty()) stack().pop_back();
  stack().push_back(state.primary);
}

context_table::pointer context_table::current() { return stack().empty() ? nullptr : stack().back(); }

void context_table::set_current(const pointer& context) {
  if (!stack().empty()) stack().pop_back();
  if (context != nullptr) stack().push_back(context);
  use_device_of_top();
}

void context_table::push(const pointer& context) {
  stack().push_back(context);
  use_device_of_top();
}

context_table::pointer context_table::pop() {
  pointer top = current();
  require(top != nullptr, cudaErrorDeviceUninitialized);
  stack().pop_back();
  use_device_of_top();
  return top;
}

context_table& contexts() {
  static auto* const only = new context_table;
  return *only;
}

}  // namespace hpe::libcuda
