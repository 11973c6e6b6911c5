#pragma once

/// The device code of one fat binary, and its kernels and variables. It is loaded when something of it is used.

#include <driver_types.h>
#include <vector_types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hpe/ptx.h"

namespace hpe::cudart {

class memory_table;
class module;

/// A kernel of a module. Programs hold its address as cudaKernel_t and cudaFunction_t. Thread-safe.
class kernel {
 public:
  kernel(module& owner, std::string name, const void* host_function)
      : owner_(&owner), name_(std::move(name)), host_function_(host_function) {}

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const void* host_function() const noexcept { return host_function_; }
  [[nodiscard]] module& owner() const noexcept { return *owner_; }

  /// hpe's kernel and its description; both load the module. Throw what module::handle throws, and
  /// cudaErrorInvalidDeviceFunction for a name that the module does not have.
  [[nodiscard]] hpeKernel handle();
  [[nodiscard]] hpeKernelInfo info();

  /// What cudaFuncSetAttribute sets. Throws cudaErrorInvalidValue.
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
  void find();

  module* const owner_;
  const std::string name_;
  const void* const host_function_;
  std::mutex mutex_;
  hpeModule found_in_ = nullptr;  // the module as it was loaded when handle_ was found
  hpeKernel handle_ = nullptr;
  hpeKernelInfo info_{};
  std::size_t dynamic_shared_limit_ = 0;  // 0: not set
  int carveout_ = cudaSharedmemCarveoutDefault;
  cluster_settings cluster_;
};

/// A variable of a module.
struct variable {
  module* owner = nullptr;
  std::string name;
  const void* host_symbol = nullptr;  // what the program names it by
  void** managed = nullptr;           // where the program reads a managed variable's address; null for others
  std::size_t size = 0;
};

struct memory_range {
  void* address = nullptr;
  std::size_t size = 0;
};

/// Thread-safe.
class module {
 public:
  /// Containers of fat binaries as they lie in the program; their PTX is linked. They must live as long as this.
  module(std::vector<const void*> containers, memory_table& memory) :memory_(memory),
      containers_(std::move(containers)) {}

  /// PTX itself.
  module(std::string text, memory_table& memory) :memory_(memory), texts_{std::move(text)} {}

  ~module();
  module(const module&) = delete;
  module& operator=(const module&) = delete;

  /// Loads it if that is not done. The first failure is told on standard error; each throws:
  /// cudaErrorNoKernelImageForDevice where there is no PTX, cudaErrorInvalidPtx for PTX that hpe cannot run.
  [[nodiscard]] hpeModule handle();

  /// Where a variable lies on a device; enters it in the table of memory, because the host may use it from then on.
  /// Throws cudaErrorInvalidSymbol.
  [[nodiscard]] memory_range locate(const std::string& name, int device);

  /// Waits for its launches and gives its memory back; variables are made anew when it is used again.
  void unload() noexcept;

  /// Called before the program starts, in the order of the program's registrations.
  void add_managed(const variable& made) { managed_.push_back(made); }

 private:
  hpeModule load();
  memory_range enter(hpeModule loaded, const std::string& name, int device, bool is_managed);

  memory_table& memory_;
  const std::vector<const void*> containers_;
  std::vector<std::string> texts_;
  std::vector<variable> managed_;
  std::mutex mutex_;
  hpeModule handle_ = nullptr;
  cudaError_t failure_ = cudaSuccess;
  std::vector<void*> entered_;  // variables in the table of memory
};

}  // namespace hpe::cudart
