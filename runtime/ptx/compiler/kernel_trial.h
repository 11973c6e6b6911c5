#pragma once

/// Runs the first blocks of a kernel in the interpreter, because most programs run most of their kernels for less time
/// than their compilation takes. When the interpreter has executed so many instructions that the compilation would have
/// taken about as long, the kernel continues in native code. If the kernel cannot be compiled, it stays in the
/// interpreter, because its launch has begun.

#include "runtime/base/function_ref.h"
#include "runtime/ptx/compiler/compiler.h"
#include "runtime/ptx/execution/block_range.h"

namespace hpe::ptx {

/// Returns the number of instructions that the interpreter executes in about the time that the compilation of the
/// kernel takes.
[[nodiscard]] std::uint64_t work_of_compilation(const function& kernel);

/// One kernel of an image. Thread-safe.
class kernel_trial {
 public:
  /// All arguments must outlive the trial. `most`: the number of instructions after which the kernel continues in
  /// native code; usually work_of_compilation(kernel). `finds_races`: whether the interpreter looks for races
  /// (launch_configuration::races); such a trial does not depend on earlier processes.
  kernel_trial(const image& of, const function& kernel, compiled_image& compiled, std::uint64_t most,
               bool finds_races = false);

  /// Returns whether launches of the kernel, with blocks of this size, begin in the interpreter. If not, the caller
  /// uses compiled_image::engine_for.
  [[nodiscard]] bool is_open(const dimensions& block);
  /// Like run_blocks, for a launch that is not cooperative.
  [[nodiscard]] std::optional<trap> run(const launch_configuration& configuration, block_range blocks,
                                        const std::function<std::optional<block_range>()>& more,
                                        const block_room& room = {});
  /// The number of instructions that the interpreter has executed, also in earlier processes.
  [[nodiscard]] std::uint64_t work() const { return meter_.done(); }
  /// Call this after a launch. Stores the number of executed instructions from time to time, so that a program that
  /// runs often is compiled too.
  void keep_work();

 private:
  /// Returns compile(); null if compile throws, after which all blocks stay in the interpreter.
  std::shared_ptr<execution_engine> compiled_by(function_ref<std::shared_ptr<execution_engine>()> compile);

  const image& image_;
  const function& kernel_;
  compiled_image& compiled_;
  const bool finds_races_;
  function own_;  // the kernel with stops, which the interpreter runs
  work_meter meter_;
  std::atomic<std::uint64_t> kept_{0};  // the number of instructions that the store of kernels contains
  std::atomic<bool> is_open_;
  std::atomic<bool> has_looked_ = false;  // whether is_open has looked for native code in the store
};

}  // namespace hpe::ptx
