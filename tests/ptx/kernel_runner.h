#pragma once

/// Loads PTX and runs its kernels with an engine, for tests and benchmarks.

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/ptx/build/access_recording.h"
#include "runtime/ptx/compiler/kernel_trial.h"
#include "runtime/ptx/execution/block_range.h"
#include "runtime/ptx/execution/interpreter.h"
#include "runtime/ptx/patch/patch.h"
#include "runtime/ptx/races/race_report.h"
#include "runtime/ptx/text/parser.h"

namespace hpe::ptx::test {

/// handed_over: blocks begin in the interpreter, and after a random number of instructions, all blocks continue in
/// native code (runtime/ptx/compiler/kernel_trial.h). The last two kinds patch the kernels that may be spread
/// (runtime/ptx/patch), and run each grid of these kernels in several parts.
enum class engine_kind { interpreter, compiler, handed_over, interpreter_in_parts, compiler_in_parts };

/// Whether this build has LLVM. The build system defines it, so that tests fail, and are not skipped, if the compiler
/// cannot be loaded.
inline constexpr bool has_compiler = HPE_PTX_COMPILER != 0;

/// Returns the bytes of a file. Throws if there is no such file.
std::string read_file(const std::string& path);

class kernel_runner {
 public:
  /// kept: where compiled kernels are stored; by default they are not stored. recorded: where accesses are recorded,
  /// and reads: which reads; null: nowhere.
  kernel_runner(std::vector<std::string> texts, engine_kind kind, warp_order order = warp_order::independent,
                const kernel_store& kept = {}, const record_places* recorded = nullptr,
                recorded_reads reads = recorded_reads::all);

  struct shape {
    dimensions grid, block;
    std::uint32_t dynamic_shared = 0;
    bool together = false;
    std::optional<dimensions> cluster = std::nullopt;
    std::uint64_t range = 0;  // run_blocks gets ranges of so many blocks; if 0, one range of all blocks
  };

  /// Launches a kernel. The arguments are those that the kernel declares, in order.
  template <class... Arguments>
  std::optional<trap> launch(const std::string& kernel, const shape& s, const Arguments&... arguments) {
    const function& f = find(kernel);
    std::vector<std::uint8_t> parameters(f.formals_size + 16);
    std::size_t n = 0;
    const auto put = [&](std::span<const std::byte> argument) {
      std::memcpy(parameters.data() + f.formals.at(n++).offset, argument.data(), argument.size());
    };
    (put(std::as_bytes(std::span(&arguments, 1))), ...);
    return launch_with(f, s, parameters.data());
  }

  /// Returns zeroed memory that kernels may access.
  void* allocate(std::size_t bytes, std::size_t alignment = 256);
  template <class T>
  T* upload(const std::vector<T>& values) {
    auto* const memory = static_cast<T*>(allocate(values.size() * sizeof(T)));
    if (!values.empty()) std::memcpy(memory, values.data(), values.size() * sizeof(T));
    return memory;
  }
  /// Lets kernels access memory that the caller owns.
  void lend(void* memory, std::size_t bytes) { memory_.emplace_back(reinterpret_cast<std::uint64_t>(memory), bytes); }
  [[nodiscard]] void* address_of(const std::string& variable) const;
  /// Returns the races of an interpreted kernel that were found since the last call. A launch with a race throws unless
  /// races are allowed. So the tests of kernels also test that hpe reports no false race.
  [[nodiscard]] std::vector<std::string> races_of(const std::string& kernel) { return report_for(find(kernel)).take(); }
  void allow_races() { allows_races_ = true; }
  [[nodiscard]] const std::string& printed() const { return printed_; }
  [[nodiscard]] const ptx::program& program() const { return *program_; }
  [[nodiscard]] std::size_t blocks_on_heap() const { return heap_.size(); }
  std::shared_ptr<execution_engine> make_engine(const launch_configuration& c);
  /// Returns whether the kernel runs as native code.
  [[nodiscard]] bool is_compiled(const std::string& kernel) const {
    return compiled_ != nullptr && compiled_->is_compiled(find(kernel));
  }
  const function& find(const std::string& kernel) const;
  std::optional<trap> launch_with(const function& f, const shape& s, const void* parameters);
  /// Returns the patched kernels; null unless grids run in parts.
  [[nodiscard]] const patch::patched_module* patched() const { return parts_ == nullptr ? nullptr : &parts_->module; }

 private:
  /// A second program, whose kernels use the variables of the first program.
  struct program_of_parts {
    patch::patched_module module;
    std::shared_ptr<const ptx::program> program;
    std::unique_ptr<ptx::image> image;
    std::unique_ptr<compiled_image> compiled;
    std::mt19937 random{7};
  };

  race_report& report_for(const function& kernel);
  bool may_touch(std::uint64_t address, std::size_t bytes) const;
  void make_parts(bool compile_them, warp_order order);
  std::optional<trap> launch_in_parts(const patch::patched_kernel& kernel, launch_configuration c);

  std::vector<std::pair<std::uint64_t, std::size_t>> memory_;
  std::vector<std::unique_ptr<std::uint8_t[]>> owned_;
  std::vector<std::pair<std::uint64_t, std::size_t>> heap_;
  std::shared_ptr<const ptx::program> program_;
  std::unique_ptr<image> image_;
  std::unique_ptr<compiled_image> compiled_;
  bool hands_over_;
  std::mt19937 random_{11};
  std::unique_ptr<program_of_parts> parts_;
  surroundings surroundings_;
  std::map<const function*, std::unique_ptr<race_report>> races_;
  bool allows_races_ = false;
  std::string printed_;
};

}  // namespace hpe::ptx::test
