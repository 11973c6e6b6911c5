#include "runtime/device/soft/softd/softd_kernels.h"

#include <dlfcn.h>
#include <link.h>

#include <mutex>

#include "runtime/base/error.h"

namespace hpe::device::soft {

namespace {

// Whether the module itself defines the symbol. dlsym also finds symbols in the libraries with which the module is
// linked, for example printf.
bool defined_in(void* module, void* symbol) {
  link_map* of_module = nullptr;
  link_map* of_symbol = nullptr;
  Dl_info ignored;
  return ::dlinfo(module, RTLD_DI_LINKMAP, static_cast<void*>(&of_module)) == 0 &&
         ::dladdr1(symbol, &ignored, reinterpret_cast<void**>(&of_symbol), RTLD_DL_LINKMAP) != 0 &&
         of_module == of_symbol;
}

}  // namespace

void softd_kernels::load(std::uint32_t module, const std::string& path) {
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  HPE_REQUIRE(handle != nullptr, HPE_ERROR_NOT_FOUND, "loading kernels: {}", ::dlerror());
  const lock_guard lock(mutex_);
  modules_[module] = handle;
}

void softd_kernels::load(std::uint32_t module, std::shared_ptr<loaded_ptx_module> ptx) {
  const lock_guard lock(mutex_);
  ptx_[module] = std::move(ptx);
}

void softd_kernels::unload(std::uint32_t module) {
  const lock_guard lock(mutex_);
  const auto found = ptx_.find(module);
  if (found == ptx_.end()) return;
  std::erase_if(functions_, [&](const auto& entry) { return entry.second.ptx == found->second; });
  ptx_.erase(found);
}

void softd_kernels::find(std::uint32_t module, std::uint32_t function, const std::string& name) {
  const lock_guard lock(mutex_);
  if (const auto ptx = ptx_.find(module); ptx != ptx_.end()) {
    functions_[function] = {nullptr, ptx->second, name};
    return;
  }
  const auto found = modules_.find(module);
  HPE_REQUIRE(found != modules_.end(), HPE_ERROR_NOT_FOUND, "kernel \"{}\": module {} is not loaded", name, module);
  void* symbol = ::dlsym(found->second, name.c_str());
  HPE_REQUIRE(symbol != nullptr, HPE_ERROR_NOT_FOUND, "there is no kernel \"{}\": {}", name, ::dlerror());
  HPE_REQUIRE(defined_in(found->second, symbol), HPE_ERROR_NOT_FOUND,
              "there is no kernel \"{}\" in the module, only in a library with which the module is linked", name);
  functions_[function] = {reinterpret_cast<hpeHostKernel>(symbol), nullptr, name};
}

const softd_kernels::kernel& softd_kernels::at(std::uint32_t function) const {
  const shared_lock_guard lock(mutex_);
  const auto found = functions_.find(function);
  HPE_REQUIRE(found != functions_.end(), HPE_ERROR_NOT_FOUND, "there is no kernel number {}", function);
  return found->second;
}

}  // namespace hpe::device::soft
