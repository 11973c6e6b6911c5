#pragma once

/// The compiler from PTX to native code. It is a shared object of its own (libhpe-ptx-compiler.so), which the first
/// call of compile() loads.

#include <memory>
#include <string>

#include "runtime/base/log.h"
#include "runtime/base/options.h"
#include "runtime/ptx/execution/block.h"

namespace hpe::ptx {

/// The kernels of an image. A kernel is compiled when it is first used, once for each number of lanes that its blocks
/// need. Thread-safe.
class compiled_image {
 public:
  compiled_image() = default;
  compiled_image(const compiled_image&) = delete;
  compiled_image& operator=(const compiled_image&) = delete;
  virtual ~compiled_image() = default;

  /// Returns a new engine that runs blocks of the kernel, each block in one thread. Blocks have the size `block`. The
  /// engine is the interpreter if the kernel cannot be compiled, for example because a recursive or indirectly called
  /// function has a barrier or a warp instruction.
  [[nodiscard]] virtual std::shared_ptr<engine> engine_for(const function& kernel, const dimensions& block) = 0;
  /// Returns whether engine_for returns compiled code. Compiles the kernel for blocks of whole warps. For tests and
  /// messages.
  [[nodiscard]] virtual bool is_compiled(const function& kernel) = 0;
};

/// The folder that stores compiled kernels for later runs. Several processes may use one folder.
struct kernel_store {
  std::string folder;            // empty: kernels are not stored
  std::uint64_t most_bytes = 0;  // above it, the least recently used files are removed; 0: kernels are not stored
};

/// Returns the folder and the limit that the options HPE_KERNEL_CACHE and HPE_KERNEL_CACHE_SIZE name.
[[nodiscard]] kernel_store kernel_store_of(const options& option);

/// Loads the shared object now, which takes some milliseconds, so that a later call of compile() finds it loaded.
/// Thread-safe.
void open_compiler();

/// Returns the compiled image, or null if hpe was built without LLVM or if the shared object cannot be loaded; hpe then
/// interprets the kernels. The image must outlive the result.
[[nodiscard]] std::unique_ptr<compiled_image> compile(const image& what, const kernel_store& kept = {});

/// The data that compile() passes to the shared object.
struct compile_request {
  const image& what;
  const kernel_store& kept;
  log_level level;     // the shared object has its own log level
  const void* parser;  // an address in the shared object that parsed the program
};

}  // namespace hpe::ptx
