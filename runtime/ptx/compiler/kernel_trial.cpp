#include "runtime/ptx/compiler/kernel_trial.h"

#include <exception>

#include "runtime/base/log.h"

namespace hpe::ptx {

namespace {

bool has_cluster(const function& kernel) { return kernel.cluster[0] != 0 || kernel.needs_cluster; }

}  // namespace

std::uint64_t work_of_compilation(const function& kernel) {
  // While LLVM compiles one instruction, the interpreter executes this number of instructions. Even an empty kernel
  // takes as long to compile as 30 instructions.
  constexpr std::uint64_t executed_for_each_instruction = 25000;
  constexpr std::uint64_t least_instructions = 30;
  return (kernel.code.size() + least_instructions) * executed_for_each_instruction;
}

kernel_trial::kernel_trial(const image& of, const function& kernel, compiled_image& compiled, std::uint64_t most)
    : image_(of),
      kernel_(kernel),
      compiled_(compiled),
      own_(kernel),
      meter_(most),
      is_open_(can_hand_over(of.program(), kernel) && !has_cluster(kernel)) {
  if (!is_open_) return;
  own_.code = with_stops(kernel.code);
  kept_ = compiled.kept_work(kernel);
  meter_.add(kept_);
}

bool kernel_trial::is_open(const dimensions& block) {
  if (!is_open_) return false;
  if (meter_.is_used_up() || (!has_looked_.exchange(true) && compiled_.find_engine(kernel_, block) != nullptr))
    is_open_ = false;
  return is_open_;
}

std::shared_ptr<execution_engine> kernel_trial::compiled_by(function_ref<std::shared_ptr<execution_engine>()> compile) {
  try {
    return compile();
  } catch (const std::exception& e) {
    log(log_level::warn, "kernel {} is interpreted, which is slow, because it cannot be compiled: {}", kernel_.name,
        e.what());
    meter_.lift_limit();
    return nullptr;
  }
}

std::optional<trap> kernel_trial::run(const launch_configuration& configuration, block_range blocks,
                                      const std::function<std::optional<block_range>()>& more, const block_room& room) {
  launch_configuration own = configuration;
  own.kernel = &own_;
  interpreter first(image_.program(), own_, meter_);
  const handover leave{meter_, [this] { return compiled_by([this] { return compiled_.successor_for(kernel_); }); }};
  for (;;) {
    if (auto stopped = run_until_handover(first, own, blocks, more, room, leave)) return stopped;
    if (!meter_.is_used_up()) return std::nullopt;
    if (blocks.begin == blocks.end) {
      const auto others = more();
      if (!others) return std::nullopt;
      blocks = *others;
    }
    if (const auto native = compiled_by([&] { return compiled_.engine_for(kernel_, configuration.block); }))
      return run_blocks(*native, configuration, blocks, more, room);
  }
}

void kernel_trial::keep_work() {
  constexpr std::uint64_t parts = 8;  // the store gets a new number after each eighth of the instructions
  std::uint64_t before = kept_;
  const std::uint64_t now = meter_.done();
  if (now - before < meter_.most() / parts || !kept_.compare_exchange_strong(before, now)) return;
  compiled_.keep_work(kernel_, now);
}

}  // namespace hpe::ptx
