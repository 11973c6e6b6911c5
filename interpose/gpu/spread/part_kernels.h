#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "interpose/gpu/spread/joined_gpus.h"
#include "interpose/gpu/spread/program_code.h"
#include "runtime/base/thread_safety.h"
#include "runtime/os/worker.h"

namespace hpe::cuda_hooks {

/// A kernel of the program, with the information that hpe needs to run a launch of the kernel in parts. Not changed
/// after construction.
struct part_kernel {
  std::string name;
  std::shared_ptr<program_image> image;
  std::shared_ptr<kernel_code> analysis;               // null if hpe has no PTX of the kernel
  const spread::module_model::kernel* code = nullptr;  // likewise; owned by `analysis`
  std::string obstacle;                                // why the kernel stays on one GPU; empty: it may be spread
  bool has_atomics = false;                            // whether the kernel has atomic operations on global memory
  bool is_awaited = false;                             // whether a thread is analysing the kernel

  /// Whether the kernel's pointers (spread::kernel_model::pointers) lead to all memory that a launch with these
  /// parameters uses, except textures.
  [[nodiscard]] bool finds_memory(const std::vector<std::byte>& parameters) const;
  /// Returns the number of bytes of the patched PTX. To be called only if `code` is not null.
  [[nodiscard]] std::size_t bytes_of_patched() const;
};

/// Finds the kernels of the program by the handles that the program launches, and loads patched code that runs a part
/// of a kernel's grid. Thread-safe.
class part_kernels {
 public:
  part_kernels(const device::cuda::driver& cu, const joined_gpus& gpus) : cu_(cu), gpus_(gpus) {}

  /// To be called when the program has unloaded a module or library. Unloads the patched code of images that only this
  /// object owns. Before that, calls forgotten() for each of their kernels that has been analysed.
  void forget_handles(const std::function<void(const spread::kernel_model&)>& forgotten);

  /// Returns the kernel of a handle. The first call for a handle analyses the kernel. If the driver has refused the
  /// kernel's patched code, `obstacle` contains the reason.
  [[nodiscard]] std::shared_ptr<const part_kernel> of(CUfunction handle);
  /// Likewise, but does not analyse the kernel: lets `by` analyse it, and until then returns a kernel without code
  /// whose obstacle says so.
  [[nodiscard]] std::shared_ptr<const part_kernel> of_if_analysed(CUfunction handle, os::worker& by);
  /// Returns, for each GPU, the function that runs parts of the kernel, prepared for `shared` bytes of dynamic shared
  /// memory. Throws hpe::error if the driver refuses the patched code.
  [[nodiscard]] std::vector<CUfunction> load(const std::shared_ptr<const part_kernel>& kernel, CUfunction handle,
                                             unsigned shared);
  /// Whether the kernel's patched code is loaded, or load_ahead() has failed to load it. In both cases, another call of
  /// load_ahead() has no use.
  [[nodiscard]] bool is_loaded(const part_kernel& kernel);
  /// Loads the patched code of a kernel, so that a later load() need not load it. Other threads can queue launches in
  /// the meantime. If the driver refuses the code, this function does not throw, but the later load() does.
  void load_ahead(const part_kernel& kernel);
  /// Queues, on a stream, copies of the program's constants (__constant__ variables) to a GPU's patched module, for the
  /// next work on the stream. Copies nothing if `written` has not changed since the last copy on this stream, so the
  /// caller must change `written` after each write to memory that may contain constants. Throws hpe::error if the
  /// driver refuses.
  void bring_constants(const part_kernel& kernel, unsigned gpu, CUstream stream, std::uint64_t written);

 private:
  /// A constant of the program, in the memory of the first GPU, and the constants with the same name in the patched
  /// modules of all GPUs.
  struct constant {
    CUdeviceptr from = 0;
    std::size_t bytes = 0;
    std::vector<CUdeviceptr> to;
  };
  /// The patched code of one kernel.
  struct gpu_modules {
    std::vector<CUmodule> of_gpus;
    std::vector<constant> constants;  // found by the first load(), if the kernel uses constants
    struct copy {
      CUstream on = nullptr;
      std::uint64_t written = 0;
    };
    std::vector<copy> copied;  // the last copy of the constants to each GPU
    bool is_refused = false;   // load_ahead() has failed
  };
  struct ready_kernel {
    std::shared_ptr<const part_kernel> kernel;
    std::vector<CUfunction> parts;  // one for each GPU; empty before load()
    unsigned most_shared = 0;       // the dynamic shared memory for which `parts` are prepared, in bytes
  };
  /// A kernel of an image.
  struct image_kernel {
    std::shared_ptr<kernel_code> analysis;
    gpu_modules patched;  // loaded in advance (load_ahead) or when a launch first needs it
  };
  /// Returns the name, the image and the analysis of a kernel; without an image, the obstacle is set.
  [[nodiscard]] part_kernel look_up(CUfunction handle) HPE_REQUIRES(mutex_);
  /// Completes what look_up() has returned, from the analysis of the kernel.
  [[nodiscard]] part_kernel describe(part_kernel found) HPE_REQUIRES(mutex_);
  /// The kernel must have an analysis. It keeps its image, so the image is not forgotten.
  [[nodiscard]] gpu_modules& patched_of(const part_kernel& kernel) HPE_REQUIRES(mutex_);
  [[nodiscard]] gpu_modules load_module(const part_kernel& kernel) const;
  [[nodiscard]] std::vector<CUfunction> find_parts(const part_kernel& kernel, CUfunction handle, unsigned shared)
      HPE_REQUIRES(mutex_);
  void unload(const gpu_modules& module) const;
  void find_constants(gpu_modules& made, const std::vector<std::string>& names, CUmodule original) const;
  /// A variable of a module on one GPU.
  struct variable {
    CUdeviceptr address = 0;
    std::size_t bytes = 0;
  };
  [[nodiscard]] variable find_variable(CUmodule module, unsigned gpu, const std::string& name) const;
  [[nodiscard]] CUmodule module_of(CUfunction handle) const;

  const device::cuda::driver& cu_;
  const joined_gpus& gpus_;
  mutex mutex_;  // hooks of allocations and queries must not lock it
  std::unordered_map<const void*, ready_kernel> kernels_ HPE_GUARDED_BY(mutex_);
  // By image, the kernels that have been launched, by their names.
  std::map<std::shared_ptr<program_image>, std::map<std::string, image_kernel>> images_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::cuda_hooks
