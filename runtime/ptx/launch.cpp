#include "runtime/ptx/launch.h"

#include <fmt/core.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <csignal>

#include "runtime/ptx/scheduler.h"

namespace hpe::ptx {

namespace {

// Blocks that are resident at the same time and take turns in this thread.
class gang {
 public:
  explicit gang(const launch_configuration& c) : configuration_(c), size_(cluster_size(c)) {
    const dimensions& g = c.grid;
    if (g.x % size_.x != 0 || g.y % size_.y != 0 || g.z % size_.z != 0 || size_.count() > most_blocks_of_cluster) {
      trap wrong;
      wrong.why = trap::reason::illegal;
      wrong.kernel = c.kernel->name;
      wrong.detail = fmt::format("a grid of {} x {} x {} blocks cannot be cut into clusters of {} x {} x {}", g.x, g.y,
                                 g.z, size_.x, size_.y, size_.z);
      throw trap_exception{wrong};
    }
  }

  void add(std::shared_ptr<engine> runs) {
    auto block = std::make_unique<scheduler>(*runs, configuration_);
    residents_.push_back({std::move(runs), std::move(block), true});
  }

  [[nodiscard]] std::uint64_t cluster_count() const { return configuration_.grid.count() / size_.count(); }
  [[nodiscard]] std::uint64_t blocks_per_cluster() const { return size_.count(); }
  [[nodiscard]] dimensions first_block(std::uint64_t cluster) const {
    const std::uint32_t columns = configuration_.grid.x / size_.x, rows = configuration_.grid.y / size_.y;
    return {static_cast<std::uint32_t>(cluster % columns) * size_.x,
            static_cast<std::uint32_t>(cluster / columns % rows) * size_.y,
            static_cast<std::uint32_t>(cluster / columns / rows) * size_.z};
  }
  /// The number of the cluster whose first block this is, with blocks in grid order; none for other blocks.
  [[nodiscard]] std::optional<std::uint64_t> cluster_that_begins(std::uint64_t block) const {
    const dimensions& g = configuration_.grid;
    const auto x = static_cast<std::uint32_t>(block % g.x), y = static_cast<std::uint32_t>(block / g.x % g.y),
               z = static_cast<std::uint32_t>(block / g.x / g.y);
    if (x % size_.x != 0 || y % size_.y != 0 || z % size_.z != 0) return std::nullopt;
    return x / size_.x + std::uint64_t{g.x / size_.x} * (y / size_.y + std::uint64_t{g.y / size_.y} * (z / size_.z));
  }

  /// Runs these clusters to their end. There must be a resident for each of their blocks.
  void run(std::uint64_t first_cluster, std::uint64_t last_cluster) {
    clusters_.assign(last_cluster - first_cluster, {});
    std::size_t next = 0;
    for (std::uint64_t n = first_cluster; n < last_cluster; ++n) {
      cluster_members& cluster = clusters_[n - first_cluster];
      cluster.size = size_;
      cluster.is_explicit = configuration_.cluster.has_value() || configuration_.kernel->cluster[0] != 0;
      const dimensions first = first_block(n);
      for (std::uint32_t z = 0; z < size_.z; ++z)
        for (std::uint32_t y = 0; y < size_.y; ++y)
          for (std::uint32_t x = 0; x < size_.x; ++x, ++next) {
            residents_[next].ended = false;
            residents_[next].block->begin({first.x + x, first.y + y, first.z + z}, &cluster);
          }
    }
    take_turns();
  }

 private:
  struct resident {
    std::shared_ptr<engine> runs;
    std::unique_ptr<scheduler> block;
    bool ended = true;
  };

  [[nodiscard]] static dimensions cluster_size(const launch_configuration& c) {
    if (c.cluster) return *c.cluster;
    const auto& own = c.kernel->cluster;
    return own[0] == 0 ? dimensions{} : dimensions{own[0], own[1], own[2]};
  }

  void take_turns() {
    for (;;) {
      bool any = false, all_wait = true;
      for (resident& r : residents_) {
        if (r.ended) continue;
        const scheduler::state now = r.block->advance();
        r.ended = now == scheduler::state::ended;
        any |= !r.ended;
        all_wait &= now == scheduler::state::waiting;
      }
      if (!any) return;
      if (complete_phases()) continue;
      if (all_wait)
        std::find_if(residents_.begin(), residents_.end(), [](const resident& r) {
          return !r.ended;
        })->block->report_deadlock();
      if (residents_.size() == 1) ::sched_yield();
    }
  }

  // Completes a phase of each cluster's barrier at which all threads have arrived. Returns whether there was any.
  bool complete_phases() {
    bool completed = false;
    std::size_t next = 0;
    for (cluster_members& cluster : clusters_) {
      const std::size_t end = next + cluster.blocks.size();
      bool all = true;
      for (; next < end; ++next) all = all && residents_[next].block->has_arrived(cluster.phases + 1);
      if (all) ++cluster.phases;
      completed |= all;
    }
    return completed;
  }

  const launch_configuration& configuration_;
  dimensions size_;
  std::vector<resident> residents_;
  std::vector<cluster_members> clusters_;
};

}  // namespace

std::optional<trap> run_blocks(engine& runs, const launch_configuration& configuration, std::uint64_t first,
                               std::uint64_t last) {
  try {
    gang blocks(configuration);
    // The caller owns the first engine.
    blocks.add(std::shared_ptr<engine>(&runs, [](engine*) {}));
    for (std::uint64_t n = 1; n < blocks.blocks_per_cluster(); ++n) blocks.add(runs.another());
    for (std::uint64_t n = first; n < last; ++n)
      if (const auto cluster = blocks.cluster_that_begins(n)) blocks.run(*cluster, *cluster + 1);
  } catch (const trap_exception& stopped) {
    return stopped.trap;
  }
  return std::nullopt;
}

std::optional<trap> run_together(const std::function<std::shared_ptr<engine>()>& engines,
                                 const launch_configuration& given) {
  // %envreg1 and 2 lead cooperative groups here: to the workspace's size and the word in which grid.sync counts.
  alignas(16) std::uint32_t workspace[4] = {16, 0, 0, 0};
  launch_configuration configuration = given;
  if (configuration.workspace == nullptr) configuration.workspace = workspace;
  try {
    gang blocks(configuration);
    for (std::uint64_t n = 0; n < configuration.grid.count(); ++n) blocks.add(engines());
    blocks.run(0, blocks.cluster_count());
  } catch (const trap_exception& stopped) {
    return stopped.trap;
  }
  return std::nullopt;
}

void land_page_fault(std::uint64_t address) {
  block_context* const block = scheduler::running();
  if (block == nullptr || !block->in_compiled_code) return;
  // longjmp leaves the signal handler without restoring the signal mask.
  sigset_t faults;
  sigemptyset(&faults);
  sigaddset(&faults, SIGSEGV);
  sigaddset(&faults, SIGBUS);
  ::pthread_sigmask(SIG_UNBLOCK, &faults, nullptr);
  block->fail(trap::reason::address, address, "");
}

}  // namespace hpe::ptx
