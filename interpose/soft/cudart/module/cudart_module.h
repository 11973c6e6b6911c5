#pragma once

/// The device code of one fat binary or image, with its kernels and variables. hpe loads the code when the program
/// first uses it.

#include <driver_types.h>
#include <vector_types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hpe/ptx.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cudart {

class memory_table;
class cudart_module;

/// A kernel of a module. Its address is the cudaKernel_t or cudaFunction_t of the program. Thread-safe.
class kernel {
 public:
  kernel(cudart_module& owner, std::string name, const void* host_function)
      : owner_(&owner), name_(std::move(name)), host_function_(host_function) {}

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const void* host_function() const noexcept { return host_function_; }
  [[nodiscard]] cudart_module& owner() const noexcept { return *owner_; }

  /// Return the handle and the description of hpe's kernel. Both functions load the module if necessary. Both throw the
  /// errors of cudart_module::handle, and cudaErrorInvalidDeviceFunction if the module has no kernel with this name.
  [[nodiscard]] hpeKernel handle();
  [[nodiscard]] hpeKernelInfo info();

  /// Set and return the attributes of cudaFuncSetAttribute. The functions that set an attribute throw
  /// cudaErrorInvalidValue.
  void set_dynamic_shared_limit(std::size_t bytes, std::size_t most_of_a_block);
  [[nodiscard]] std::size_t dynamic_shared_limit();
  void set_carveout(int percent);
  [[nodiscard]] int carveout();
  struct cluster_settings {
    dim3 required{0, 0, 0};  // zeros: not set
    bool allows_non_portable = false;
    int policy = cudaClusterSchedulingPolicyDefault;
  };
  void change_cluster(const std::function<void(cluster_settings&)>& change);
  [[nodiscard]] cluster_settings cluster();

 private:
  void find() HPE_REQUIRES(mutex_);

  cudart_module* const owner_;
  const std::string name_;
  const void* const host_function_;
  mutex mutex_;
  hpeModule found_in_ HPE_GUARDED_BY(mutex_) = nullptr;  // the loaded module to which handle_ belongs
  hpeKernel handle_ HPE_GUARDED_BY(mutex_) = nullptr;
  hpeKernelInfo info_ HPE_GUARDED_BY(mutex_){};
  std::size_t dynamic_shared_limit_ HPE_GUARDED_BY(mutex_) = 0;  // 0: not set
  int carveout_ HPE_GUARDED_BY(mutex_) = cudaSharedmemCarveoutDefault;
  cluster_settings cluster_ HPE_GUARDED_BY(mutex_);
};

/// A variable of a module.
struct variable {
  cudart_module* owner = nullptr;
  std::string name;
  const void* host_symbol = nullptr;  // the address of the host variable by which the program refers to this variable
  void** managed = nullptr;           // the program's pointer to a managed variable; null for other variables
  std::size_t size = 0;
};

struct memory_range {
  void* address = nullptr;
  std::size_t size = 0;
};

/// Thread-safe.
class cudart_module {
 public:
  /// `containers` are fat binary containers in the program's memory; hpe links the PTX texts in these containers. The
  /// containers must outlive the module.
  cudart_module(std::vector<const void*> containers, memory_table& memory)
      : memory_(memory), containers_(std::move(containers)) {}

  /// `texts` are PTX texts, which hpe links.
  cudart_module(std::vector<std::string> texts, memory_table& memory) : memory_(memory), texts_(std::move(texts)) {}

  ~cudart_module();
  cudart_module(const cudart_module&) = delete;
  cudart_module& operator=(const cudart_module&) = delete;

  /// Loads the module if it is not loaded yet, and returns its handle. Prints the first failure on standard error.
  /// After a failure, every call throws: cudaErrorNoKernelImageForDevice if the module has no PTX, cudaErrorInvalidPtx
  /// if hpe cannot run the PTX, or another error.
  [[nodiscard]] hpeModule handle();

  /// Returns the names of the module's kernels, in the order in which the module's PTX texts define them.
  [[nodiscard]] std::vector<std::string> kernel_names();

  /// Returns hpe's message about why the module could not be loaded; empty if loading has not failed.
  [[nodiscard]] std::string why_it_failed();

  /// Returns the address and size of a variable on a device. Adds the variable to the memory table, because the program
  /// may use this address. Throws cudaErrorInvalidSymbol.
  [[nodiscard]] memory_range locate(const std::string& name, int device);

  /// Waits for the launches of the module's kernels and frees the module's memory. The next use of the module allocates
  /// new variables.
  void unload() noexcept;

  /// To be called before main runs, for each managed variable, in the order in which the program registers the
  /// variables.
  void add_managed(const variable& made) { managed_.push_back(made); }

 private:
  hpeModule load() HPE_REQUIRES(mutex_);
  memory_range enter(hpeModule loaded, const std::string& name, int device, bool is_managed) HPE_REQUIRES(mutex_);

  memory_table& memory_;
  const std::vector<const void*> containers_;
  std::vector<std::string> texts_;
  std::vector<variable> managed_;
  mutex mutex_;
  hpeModule handle_ HPE_GUARDED_BY(mutex_) = nullptr;
  cudaError_t failure_ HPE_GUARDED_BY(mutex_) = cudaSuccess;
  std::string why_it_failed_ HPE_GUARDED_BY(mutex_);
  std::vector<void*> entered_ HPE_GUARDED_BY(mutex_);  // the variables that were added to the memory table
};

}  // namespace hpe::cudart
