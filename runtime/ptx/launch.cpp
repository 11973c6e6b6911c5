#include "runtime/ptx/launch.h"

#include <pthread.h>
#include <sched.h>

#include <csignal>

#include "runtime/ptx/scheduler.h"

namespace hpe::ptx {

namespace {

dimensions block_of(const launch_configuration& c, std::uint64_t n) {
  return {static_cast<std::uint32_t>(n % c.grid.x), static_cast<std::uint32_t>(n / c.grid.x % c.grid.y),
          static_cast<std::uint32_t>(n / c.grid.x / c.grid.y)};
}

}  // namespace

std::optional<fault> run_blocks(engine& runs, const launch_configuration& configuration, std::uint64_t first,
                                std::uint64_t last) {
  try {
    scheduler block(runs, configuration);
    for (std::uint64_t n = first; n < last; ++n) {
      block.begin(block_of(configuration, n));
      while (block.advance() == scheduler::state::paused) ::sched_yield();
    }
  } catch (const fault_exception& stopped) {
    return stopped.fault;
  }
  return std::nullopt;
}

std::optional<fault> run_together(const std::function<std::shared_ptr<engine>()>& engines,
                                  const launch_configuration& given) {
  // What cooperative groups finds through %envreg1 and 2: its size, and the word that grid.sync counts in.
  alignas(16) std::uint32_t workspace[4] = {16, 0, 0, 0};
  launch_configuration configuration = given;
  if (configuration.workspace == nullptr) configuration.workspace = workspace;
  struct resident {
    std::shared_ptr<engine> runs;
    std::unique_ptr<scheduler> block;
    bool ended = false;
  };
  try {
    std::vector<resident> blocks(configuration.grid.count());
    for (std::uint64_t n = 0; n < blocks.size(); ++n) {
      blocks[n].runs = engines();
      blocks[n].block = std::make_unique<scheduler>(*blocks[n].runs, configuration);
      blocks[n].block->begin(block_of(configuration, n));
    }
    for (std::size_t left = blocks.size(); left > 0;) {
      for (resident& r : blocks) {
        if (r.ended || r.block->advance() == scheduler::state::paused) continue;
        r.ended = true;
        --left;
      }
    }
  } catch (const fault_exception& stopped) {
    return stopped.fault;
  }
  return std::nullopt;
}

void land_page_fault(std::uint64_t address) {
  block_context* const block = scheduler::running();
  if (block == nullptr || !block->in_compiled_code) return;
  // The jump leaves the handler without restoring the mask.
  sigset_t faults;
  sigemptyset(&faults);
  sigaddset(&faults, SIGSEGV);
  sigaddset(&faults, SIGBUS);
  ::pthread_sigmask(SIG_UNBLOCK, &faults, nullptr);
  block->fail(fault::reason::address, address, "");
}

}  // namespace hpe::ptx
