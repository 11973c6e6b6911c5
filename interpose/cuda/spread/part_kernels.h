#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "interpose/cuda/spread/joined_gpus.h"
#include "interpose/cuda/spread/program_code.h"
#include "interpose/cuda/spread/program_lanes.h"

namespace hpe::cuda_hooks {

/// A kernel of the program, and how it can run in parts.
struct part_kernel {
  std::string name;
  std::shared_ptr<program_image> image;
  const spread::module_model::kernel* code = nullptr;  // null if hpe has no PTX of it
  std::string obstacle;                                // why it stays on one GPU; empty: it may be spread
  bool finds_pointers = false;                         // in memory, or makes accesses that hpe cannot follow
  bool has_atomics = false;                            // atomic operations on global memory
  std::vector<CUfunction> parts;                       // of each GPU; empty before load()
  unsigned most_shared = 0;                            // dynamic shared memory that `parts` were prepared for, in bytes
};

/// The kernels of the program, by the handles that it launches. For one thread at a time.
class part_kernels {
 public:
  part_kernels(const device::cuda::driver& cu, const joined_gpus& gpus) : cu_(cu), gpus_(gpus) {}

  /// The program has unloaded a module or library: unloads the patched modules that nothing else needs. `forgotten` is
  /// called for each kernel whose code is about to be freed.
  void forget_handles(const std::function<void(const spread::kernel_model&)>& forgotten);
  /// The program's modules are about to end with the first GPU's context: unloads all patched ones.
  void forget_modules();

  /// The kernel of a handle, analysed at its first launch. Lives until its module is unloaded.
  [[nodiscard]] part_kernel& of(CUfunction handle);
  /// Makes `parts` ready for a launch of the handle with so many bytes of dynamic shared memory; false, with an
  /// obstacle, if the driver refuses the patched code.
  bool load(part_kernel& kernel, CUfunction handle, unsigned shared);
  /// Gives a GPU's patched module the constants of the program's, for work on the lane that is queued next, behind
  /// fork(). `written` is another number after each write of memory. Throws hpe::error if the driver refuses.
  void bring_constants(const part_kernel& kernel, unsigned gpu, const std::shared_ptr<program_lane>& lane,
                       std::uint64_t written);

 private:
  /// A constant of the program, in the memory of the first GPU, and its namesakes in the patched modules.
  struct constant {
    CUdeviceptr from = 0;
    std::size_t bytes = 0;
    std::vector<CUdeviceptr> to;
  };
  struct patched_module {
    std::vector<CUmodule> of_gpus;
    std::vector<constant> constants;
    struct copy {
      std::shared_ptr<program_lane> on;
      std::uint64_t written = 0;
    };
    std::vector<copy> copied;  // the constants of each GPU, last
  };
  [[nodiscard]] program_code::origin origin_of(CUfunction handle) const;
  [[nodiscard]] std::unique_ptr<part_kernel> make(CUfunction handle);
  [[nodiscard]] patched_module load_module(program_image& image) const;
  void unload(const patched_module& module) const;
  void find_constants(patched_module& made, const std::vector<std::string>& names, CUmodule original) const;
  /// A variable of a module of a GPU.
  struct variable {
    CUdeviceptr address = 0;
    std::size_t bytes = 0;
  };
  [[nodiscard]] variable find_variable(CUmodule module, unsigned gpu, const std::string& name) const;
  [[nodiscard]] CUmodule module_of(CUfunction handle) const;

  const device::cuda::driver& cu_;
  const joined_gpus& gpus_;
  std::unordered_map<const void*, std::unique_ptr<part_kernel>> kernels_;
  std::map<std::shared_ptr<program_image>, patched_module> modules_;  // of all analysed images; loaded when needed
};

}  // namespace hpe::cuda_hooks
