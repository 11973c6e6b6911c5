// If the dynamic linker has merged two functions of the same name, two libraries register the same host function. In
// this case, the first registration is used until it is removed, and then the second one. The module of a kernel
// outlives the kernel's entries in the table.

#include "interpose/soft/cudart/module/module_table.h"

#include <algorithm>
#include <utility>

#include "interpose/soft/cudart/device/errors.h"

namespace hpe::cudart {

cudart_module& module_table::add(std::unique_ptr<cudart_module> made) {
  const lock_guard lock(mutex_);
  modules_.push_back(std::move(made));
  return *modules_.back();
}

cudart_module& module_table::load(std::vector<std::string> texts, memory_table& memory, std::string* why) {
  auto made = std::make_unique<cudart_module>(std::move(texts), memory);
  try {
    static_cast<void>(made->handle());
  } catch (const failure&) {
    if (why != nullptr) *why = made->why_it_failed();
    throw;
  }
  return add(std::move(made));
}

bool module_table::remove(cudart_module& gone) {
  std::unique_ptr<cudart_module> taken;
  {
    const lock_guard lock(mutex_);
    const auto found =
        std::find_if(modules_.begin(), modules_.end(), [&](const auto& each) { return each.get() == &gone; });
    if (found == modules_.end()) return false;
    taken = std::move(*found);
    modules_.erase(found);
    std::erase_if(by_host_function_, [&](const auto& entry) { return &entry.second->owner() == &gone; });
    std::erase_if(by_handle_, [&](const auto& entry) { return &entry.second->owner() == &gone; });
    std::erase_if(variables_, [&](const auto& entry) { return entry.second.owner == &gone; });
    for (const auto& [handle, each] : by_handle_) {
      if (each->host_function() != nullptr) by_host_function_.try_emplace(each->host_function(), each);
    }
  }
  taken->unload();
  return true;
}

bool module_table::holds(const cudart_module* candidate) const {
  const shared_lock_guard lock(mutex_);
  return std::any_of(modules_.begin(), modules_.end(), [&](const auto& each) { return each.get() == candidate; });
}

cudart_module& module_table::find_module(const void* handle) const {
  auto* const candidate = static_cast<cudart_module*>(const_cast<void*>(handle));
  require(holds(candidate), cudaErrorInvalidResourceHandle);
  return *candidate;
}

std::shared_ptr<kernel> module_table::add_kernel(cudart_module& owner, const char* name, const void* host_function) {
  auto made = std::make_shared<kernel>(owner, name, host_function);
  const lock_guard lock(mutex_);
  by_handle_.emplace(made.get(), made);
  if (host_function != nullptr) by_host_function_.try_emplace(host_function, made);
  return made;
}

std::shared_ptr<kernel> module_table::find_kernel(cudart_module& owner, const char* name) {
  hpeKernel found = nullptr;
  require(::hpeModuleGetKernel(&found, owner.handle(), name) == HPE_SUCCESS, cudaErrorSymbolNotFound);
  {
    const shared_lock_guard lock(mutex_);
    for (const auto& [handle, each] : by_handle_) {
      if (&each->owner() == &owner && each->name() == name) return each;
    }
  }
  return add_kernel(owner, name, nullptr);
}

void module_table::add_variable(const variable& made) {
  const lock_guard lock(mutex_);
  variables_.try_emplace(made.host_symbol, made);
  if (made.managed != nullptr) made.owner->add_managed(made);
}

std::shared_ptr<kernel> module_table::find_kernel(const void* function) const {
  const shared_lock_guard lock(mutex_);
  if (const auto found = by_host_function_.find(function); found != by_host_function_.end()) return found->second;
  const auto found = by_handle_.find(function);
  require(found != by_handle_.end(), cudaErrorInvalidDeviceFunction);
  return found->second;
}

variable module_table::find_variable(const void* symbol) const {
  const shared_lock_guard lock(mutex_);
  if (const auto found = variables_.find(symbol); found != variables_.end()) return found->second;
  for (const auto& [host, each] : variables_) {
    if (symbol != nullptr && each.managed != nullptr && *each.managed == symbol) return each;
  }
  throw failure(cudaErrorInvalidSymbol);
}

void module_table::unload_all() {
  const shared_lock_guard lock(mutex_);
  for (const auto& each : modules_) each->unload();
}

}  // namespace hpe::cudart
