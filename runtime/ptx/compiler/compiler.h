#pragma once

/// The compiler from PTX to native code. The compiler is a separate shared object (libhpe-ptx-compiler.so), which the
/// first call of compile() loads.

#include <memory>
#include <string>

#include "runtime/base/log.h"
#include "runtime/base/options.h"
#include "runtime/ptx/execution/block.h"

namespace hpe::ptx {

/// The kernels of an image. The first use of a kernel compiles it, once for each number of lanes (lanes.h) that its
/// blocks need. Thread-safe.
class compiled_image {
 public:
  compiled_image() = default;
  compiled_image(const compiled_image&) = delete;
  compiled_image& operator=(const compiled_image&) = delete;
  virtual ~compiled_image() = default;

  /// Returns a new engine that runs blocks of the kernel, each block in one thread. Blocks have the size `block`.
  /// Returns an interpreter if the kernel cannot be compiled, for example because a recursive or indirectly called
  /// function contains a barrier or a warp instruction.
  [[nodiscard]] virtual std::shared_ptr<execution_engine> engine_for(const function& kernel,
                                                                     const dimensions& block) = 0;
  /// Like engine_for, but returns null if the code would have to be compiled, because neither this process nor an
  /// earlier one has compiled it.
  [[nodiscard]] virtual std::shared_ptr<execution_engine> find_engine(const function& kernel,
                                                                      const dimensions& block) = 0;
  /// Returns a new engine that can continue blocks which an interpreter has begun (flow/handover.h). The first call for
  /// a kernel compiles the engine's code.
  [[nodiscard]] virtual std::shared_ptr<execution_engine> successor_for(const function& kernel) = 0;
  /// The number of instructions that interpreters have executed for the kernel (work_meter), from the store of kernels;
  /// 0 if the store has no number. keep_work() replaces the number.
  [[nodiscard]] virtual std::uint64_t kept_work(const function& kernel) = 0;
  virtual void keep_work(const function& kernel, std::uint64_t instructions) = 0;
  /// Returns whether engine_for returns compiled code. Compiles the kernel for blocks that consist of whole warps. For
  /// tests and messages.
  [[nodiscard]] virtual bool is_compiled(const function& kernel) = 0;
};

/// The folder in which hpe stores compiled kernels for later runs. Several processes may use one folder.
struct kernel_store {
  std::string folder;  // if empty, hpe stores no kernels
  std::uint64_t most_bytes =
      0;  // above this size, hpe removes the least recently used files; if 0, hpe stores no kernels
};

/// Returns the folder and the size limit that the options HPE_KERNEL_CACHE and HPE_KERNEL_CACHE_SIZE specify.
[[nodiscard]] kernel_store kernel_store_of(const options& option);

/// Loads the compiler's shared object, so that later calls of compile() need not. Loading takes some milliseconds.
/// Thread-safe.
void open_compiler();

/// Returns the compiled image; null if hpe was built without LLVM or if the shared object cannot be loaded. If the
/// result is null, the caller interprets the kernels. The image must outlive the result. Throws HPE_ERROR_INTERNAL if
/// LLVM does not support this machine.
[[nodiscard]] std::unique_ptr<compiled_image> compile(const image& what, const kernel_store& kept = {});

/// The data that compile() passes to the shared object.
struct compile_request {
  const image& what;
  const kernel_store& kept;
  log_level level;     // the log level, because the shared object has its own copy of it
  const void* parser;  // an address in the shared object that parsed the program
};

}  // namespace hpe::ptx
