#pragma once

/// Runs kernels in the interpreter, while record_check compares their accesses with the analysis.

#include <memory>
#include <string>
#include <vector>

#include "runtime/ptx/analysis/record_check.h"
#include "runtime/ptx/analysis/words.h"
#include "runtime/ptx/execution/block_range.h"
#include "runtime/ptx/execution/interpreter.h"
#include "runtime/ptx/text/parser.h"
#include "tests/ptx/kernel_runner.h"

namespace hpe::ptx::test {

/// Thrown to end a kernel that executes too many instructions.
struct too_long {};

/// Forwards all calls to a check; throws too_long after `most` instructions.
class bounded_watcher final : public instruction_observer {
 public:
  bounded_watcher(instruction_observer& check, bool also_unrun, std::uint64_t most)
      : check_(check), also_unrun_(also_unrun), left_(most) {}
  void comes_to(const block_context& block, std::uint32_t thread, const function& f, std::uint32_t position,
                const std::uint64_t* registers, bool runs) override {
    if (left_-- == 0) throw too_long{};
    check_.comes_to(block, thread, f, position, registers, runs || also_unrun_);
  }

 private:
  instruction_observer& check_;
  bool also_unrun_;
  std::uint64_t left_;
};

/// A program with memory for its variables.
class checked_program {
 public:
  explicit checked_program(const std::string& text)
      : program_(parse({text})),
        image_(program_, [this](std::size_t bytes, std::size_t alignment) { return take(bytes, alignment); }) {
    surroundings_.may_touch = [this](std::uint64_t address, std::size_t bytes) {
      for (const auto& [first, size] : memory_)
        if (address >= first && address - first <= size && bytes <= size - (address - first)) return true;
      return false;
    };
    surroundings_.print = [](std::string_view) {};
    surroundings_.allocate = [](std::size_t) -> void* { return nullptr; };
    surroundings_.release = [](void*) {};
  }

  void* take(std::size_t bytes, std::size_t alignment = 256) {
    owned_.push_back(std::make_unique<std::uint8_t[]>(bytes + alignment));
    const auto at = (reinterpret_cast<std::uint64_t>(owned_.back().get()) + alignment - 1) / alignment * alignment;
    memory_.emplace_back(at, bytes);
    return reinterpret_cast<void*>(at);
  }

  /// Runs the given blocks of the grid, each until it ends, a trap stops it, or it has executed 300,000 instructions.
  void run(instruction_observer& check, const function& kernel, dimensions grid, dimensions block,
           const void* parameters, const std::vector<std::uint64_t>& blocks, bool also_unrun = false) {
    launch_configuration c;
    c.image = &image_;
    c.kernel = &kernel;
    c.grid = grid;
    c.block = block;
    c.dynamic_shared = 4096;
    c.parameters = parameters;
    c.surroundings = &surroundings_;
    for (const std::uint64_t n : blocks) {
      bounded_watcher bounded(check, also_unrun, 300000);
      interpreter engine(*program_, &bounded);
      try {
        static_cast<void>(run_blocks(engine, c, {n, n + 1}));
      } catch (const too_long&) {
      }
    }
  }

  [[nodiscard]] const ptx::program& program() const { return *program_; }
  [[nodiscard]] const ptx::image& image() const { return image_; }

 private:
  std::vector<std::unique_ptr<std::uint8_t[]>> owned_;
  std::vector<std::pair<std::uint64_t, std::size_t>> memory_;
  std::shared_ptr<const ptx::program> program_;
  ptx::image image_;
  surroundings surroundings_;
};

}  // namespace hpe::ptx::test
