#pragma once

/// The modules that a program has registered or loaded, and the handles and addresses with which the program refers to
/// their kernels and variables.

#include <driver_types.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "interpose/soft/cudart/module/cudart_module.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cudart {

/// Thread-safe.
class module_table {
 public:
  cudart_module& add(std::unique_ptr<cudart_module> made);

  /// Adds a module with these PTX texts and loads it. If loading fails, sets *why to hpe's message (unless `why` is
  /// null) and throws the error of cudart_module::handle.
  cudart_module& load(std::vector<std::string> texts, memory_table& memory, std::string* why = nullptr);

  /// Unloads a module and removes it together with its kernels and variables. Returns false if the table does not
  /// contain the module.
  bool remove(cudart_module& gone);
  [[nodiscard]] bool holds(const cudart_module* candidate) const;

  /// Returns the module for a cudaLibrary_t, CUlibrary or CUmodule. Throws cudaErrorInvalidResourceHandle.
  [[nodiscard]] cudart_module& find_module(const void* handle) const;

  std::shared_ptr<kernel> add_kernel(cudart_module& owner, const char* name, const void* host_function);
  void add_variable(const variable& made);

  /// Returns the kernel with this name; each call returns the same object. Throws cudaErrorSymbolNotFound.
  std::shared_ptr<kernel> find_kernel(cudart_module& owner, const char* name);

  /// Returns the kernel for the address of a host function, for a cudaKernel_t or for a cudaFunction_t. Throws
  /// cudaErrorInvalidDeviceFunction.
  [[nodiscard]] std::shared_ptr<kernel> find_kernel(const void* function) const;

  /// Returns the variable for a host symbol, or the managed variable at an address. Throws cudaErrorInvalidSymbol.
  [[nodiscard]] variable find_variable(const void* symbol) const;

  /// Unloads all modules. When a module is used again, its variables have their initial values.
  void unload_all();

 private:
  mutable shared_mutex mutex_;
  std::vector<std::unique_ptr<cudart_module>> modules_ HPE_GUARDED_BY(mutex_);
  std::unordered_map<const void*, std::shared_ptr<kernel>> by_host_function_ HPE_GUARDED_BY(mutex_);
  std::unordered_map<const void*, std::shared_ptr<kernel>> by_handle_ HPE_GUARDED_BY(mutex_);
  std::unordered_map<const void*, variable> variables_
      HPE_GUARDED_BY(mutex_);  // the key is the address of the host symbol
};

}  // namespace hpe::cudart
