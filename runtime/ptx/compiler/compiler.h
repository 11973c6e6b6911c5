#pragma once

/// The compiler to native code. It is a shared object of its own (libhpe-ptx-compiler.so), loaded at the first call of
/// compile().

#include <memory>
#include <string>

#include "runtime/base/log.h"
#include "runtime/base/options.h"
#include "runtime/ptx/execution/block.h"

namespace hpe::ptx {

/// The kernels of an image; each is compiled at its first use with blocks of a shape. Thread-safe.
class compiled_image {
 public:
  compiled_image() = default;
  compiled_image(const compiled_image&) = delete;
  compiled_image& operator=(const compiled_image&) = delete;
  virtual ~compiled_image() = default;

  /// A new engine that runs blocks of this kernel and of this size in one thread: the interpreter if the kernel cannot
  /// be compiled, as if a recursive or indirectly called function has a barrier or a warp instruction.
  [[nodiscard]] virtual std::shared_ptr<engine> engine_for(const function& kernel, const dimensions& block) = 0;
  /// Whether engine_for returns compiled code; compiles the kernel for blocks of whole warps. For tests and messages.
  [[nodiscard]] virtual bool is_compiled(const function& kernel) = 0;
};

/// Where compiled kernels are kept between runs. Several processes may use one folder.
struct kernel_store {
  std::string folder;            // empty: kernels are not kept
  std::uint64_t most_bytes = 0;  // files that were not used for longest are removed; 0: kernels are not kept
};

/// The place that the options HPE_KERNEL_CACHE and HPE_KERNEL_CACHE_SIZE name.
[[nodiscard]] kernel_store kernel_store_of(const options& option);

/// Loads the shared object now, which takes some milliseconds, for a caller that compiles soon. Thread-safe.
void open_compiler();

/// Returns null, for interpreted kernels, if hpe was built without LLVM or if the shared object cannot be loaded. The
/// image must outlive the result.
[[nodiscard]] std::unique_ptr<compiled_image> compile(const image& what, const kernel_store& kept = {});

/// What compile() passes to the shared object.
struct compile_request {
  const image& what;
  const kernel_store& kept;
  log_level level;     // the shared object has a log level of its own
  const void* parser;  // an address in the object that parsed the program
};

}  // namespace hpe::ptx
