#pragma once

/// The compiler to native code: a shared object of its own (libhpe-ptx-compiler.so), which is loaded when it is first
/// asked for.

#include <memory>

#include "runtime/ptx/block.h"

namespace hpe::ptx {

/// The kernels of an image, each compiled when it is first asked for. Thread-safe.
class compiled_image {
 public:
  compiled_image() = default;
  compiled_image(const compiled_image&) = delete;
  compiled_image& operator=(const compiled_image&) = delete;
  virtual ~compiled_image() = default;

  /// An engine for blocks of this kernel in one thread. Where the kernel cannot be compiled (a recursive or indirectly
  /// called function has a barrier or a warp instruction) it is the interpreter.
  [[nodiscard]] virtual std::shared_ptr<engine> engine_for(const function& kernel) = 0;
  /// Whether engine_for gives compiled code; compiles. For tests and messages.
  [[nodiscard]] virtual bool is_compiled(const function& kernel) = 0;
};

/// Null where hpe was built without LLVM, or where the shared object does not load: then the interpreter is what there
/// is. The image must outlive the result.
[[nodiscard]] std::unique_ptr<compiled_image> compile(const image& what);

}  // namespace hpe::ptx
