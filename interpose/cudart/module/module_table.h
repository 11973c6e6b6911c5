#pragma once

/// The modules that a program registered or loaded, and the names by which it refers to kernels and variables.

#include <driver_types.h>

#include <memory>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "interpose/cudart/module/module.h"

namespace hpe::cudart {

/// Thread-safe.
class module_table {
 public:
  module& add(std::unique_ptr<module> made);

  /// Adds a module of these PTX texts and loads it. Throws what module::handle throws; *why (may be null) then becomes hpe's
  /// sentence.
  module& load(std::vector<std::string> texts, memory_table& memory, std::string* why = nullptr);

  /// Removes a module with its kernels and variables, and unloads it. Returns false if there is no such module.
  bool remove(module& gone);
  [[nodiscard]] bool holds(const module* candidate) const;

  /// The module of a cudaLibrary_t, CUlibrary or CUmodule. Throws cudaErrorInvalidResourceHandle.
  [[nodiscard]] module& find_module(const void* handle) const;

  std::shared_ptr<kernel> add_kernel(module& owner, const char* name, const void* host_function);
  void add_variable(const variable& made);

  /// The kernel of this name, the same at each call. Throws cudaErrorSymbolNotFound.
  std::shared_ptr<kernel> find_kernel(module& owner, const char* name);

  /// The kernel for the address of a host function, a cudaKernel_t or a cudaFunction_t. Throws
  /// cudaErrorInvalidDeviceFunction.
  [[nodiscard]] std::shared_ptr<kernel> find_kernel(const void* function) const;

  /// The variable of a host symbol, or the managed variable at an address. Throws cudaErrorInvalidSymbol.
  [[nodiscard]] variable find_variable(const void* symbol) const;

  /// Unloads all modules. At their next use, variables have their initial values again.
  void unload_all();

 private:
  mutable std::shared_mutex mutex_;
  std::vector<std::unique_ptr<module>> modules_;
  std::unordered_map<const void*, std::shared_ptr<kernel>> by_host_function_;
  std::unordered_map<const void*, std::shared_ptr<kernel>> by_handle_;
  std::unordered_map<const void*, variable> variables_;  // by host symbol
};

}  // namespace hpe::cudart
