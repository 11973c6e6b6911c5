#include "runtime/ptx/execution/block_range.h"

#include <fmt/core.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include "runtime/ptx/execution/scheduler.h"
#include "runtime/ptx/races/race_finder.h"

namespace hpe::ptx {

namespace {

using steady = std::chrono::steady_clock;

// The clusters that are resident in this CPU thread at the same time, and run in turns. A grid without clusters counts
// as a grid of clusters of one block.
class gang {
 public:
  /// `in_strips`: whether adjacent blocks may run as strips (execution_engine::run_strip).
  /// `leave`: null unless the engines are interpreters that blocks may leave.
  gang(const launch_configuration& c, std::function<std::shared_ptr<execution_engine>()> engines, block_room room = {},
       bool in_strips = false, const handover* leave = nullptr)
      : configuration_(c),
        engines_(std::move(engines)),
        room_(std::move(room)),
        size_(cluster_size(c)),
        in_strips_(in_strips && is_single()),
        leave_(leave) {
    const dimensions& g = c.grid;
    if (g.x % size_.x != 0 || g.y % size_.y != 0 || g.z % size_.z != 0 || size_.count() > most_blocks_of_cluster) {
      trap wrong;
      wrong.why = trap::reason::illegal;
      wrong.kernel = c.kernel->name;
      wrong.detail = fmt::format("a grid of {} x {} x {} blocks cannot be cut into clusters of {} x {} x {}", g.x, g.y,
                                 g.z, size_.x, size_.y, size_.z);
      throw trap_exception{wrong};
    }
    clusters_ = {g.x / size_.x, g.y / size_.y, g.z / size_.z};
  }

  // The value for "no cluster". std::optional would be slower, because the compiler would pass it through memory.
  static constexpr std::uint64_t none = ~std::uint64_t{0};

  /// Whether no cluster is resident.
  [[nodiscard]] bool is_empty() const { return taken_ == 0; }
  [[nodiscard]] std::uint64_t cluster_count() const { return configuration_.grid.count() / size_.count(); }
  /// Returns the number of the cluster whose first block is `block`; `none` if there is no such cluster. Blocks are
  /// numbered in grid order.
  [[nodiscard]] std::uint64_t cluster_that_begins(std::uint64_t block) const {
    if (is_single()) return block;  // saves divisions
    const dimensions& g = configuration_.grid;
    const auto x = static_cast<std::uint32_t>(block % g.x), y = static_cast<std::uint32_t>(block / g.x % g.y),
               z = static_cast<std::uint32_t>(block / g.x / g.y);
    if (x % size_.x != 0 || y % size_.y != 0 || z % size_.z != 0) return none;
    return x / size_.x + std::uint64_t{g.x / size_.x} * (y / size_.y + std::uint64_t{g.y / size_.y} * (z / size_.z));
  }

  /// Makes the cluster with this number resident.
  void admit(std::uint64_t number) {
    auto free = std::find_if(seats_.begin(), seats_.end(), [](const auto& s) { return !s->is_taken; });
    if (free == seats_.end()) free = seats_.insert(free, make_seat());
    seat& here = **free;
    here.is_taken = true;
    ++taken_;
    here.cluster.blocks.clear();
    here.cluster.phases = 0;
    if (here.races != nullptr) here.races->begin();
    const dimensions& at = place_of(number);
    std::size_t next = 0;
    for (std::uint32_t z = 0; z < size_.z; ++z)
      for (std::uint32_t y = 0; y < size_.y; ++y)
        for (std::uint32_t x = 0; x < size_.x; ++x, ++next) {
          here.residents[next].has_ended = false;
          here.residents[next].block->begin(at.x * size_.x + x, at.y * size_.y + y, at.z * size_.z + z, &here.cluster);
        }
  }

  /// Runs the resident clusters and the clusters whose numbers `next` returns, until all have ended and `next` returns
  /// `none`. The next cluster becomes resident when all others have ended. If the resident clusters do not end, they
  /// may be waiting for blocks that are not resident. Then the number of resident clusters doubles, up to the limit.
  /// follow(most) removes up to `most` clusters from those that `next` returns, if their numbers follow the last
  /// returned number, and returns how many.
  ///
  /// This function is a template, because small blocks take only tens of nanoseconds.
  template <class Next, class Follow>
  void run(const Next& next, const Follow& follow) {
    steady::time_point patient_until{};
    for (;;) {
      while (taken_ == 0) {
        const std::uint64_t cluster = next();
        if (cluster == none) return;
        admit(cluster);
        patient_until = {};
        if (in_strips_) {
          seat& here = *seats_.front();
          const std::uint32_t more = follow(std::min(strip_blocks(), clusters_.x - place_.x) - 1);
          here.residents[0].block->run_strip(1 + more);
          place_.x += more;
          following_ += more;
          here.is_taken = false;
          --taken_;
        } else if (is_single()) {
          take_turn(*seats_.front());  // most blocks end in their first turn
        }
      }
      bool is_progress = false;
      for (const auto& each : seats_)
        if (each->is_taken && take_turn(*each)) is_progress = true;
      if (is_progress) {
        patient_until = {};
        continue;
      }
      const steady::time_point now = steady::now();
      if (patient_until == steady::time_point{}) patient_until = now + patience;
      if (now >= patient_until) {
        patient_until = now + patience;
        for (std::size_t more = taken_; more > 0 && taken_ < most_seats(); --more) {
          const std::uint64_t cluster = next();
          if (cluster == none) break;
          admit(cluster);
        }
        const std::uint64_t resident = taken_ * size_.count();
        if (taken_ >= most_seats() && resident < configuration_.grid.count() && room_.crowded) room_.crowded(resident);
      }
      ::sched_yield();
    }
  }

 private:
  struct resident {
    std::shared_ptr<execution_engine> runs;
    std::unique_ptr<scheduler> block;
    bool has_ended = true;
    bool has_left = false;  // whether the block has left its interpreter
  };
  // The memory of a resident cluster: its blocks with their engines.
  struct seat {
    std::vector<resident> residents;
    cluster_members cluster;
    std::unique_ptr<race_finder> races;
    bool is_taken = false;
  };

  static constexpr auto patience = std::chrono::milliseconds(2);

  [[nodiscard]] bool is_single() const { return blocks_of_cluster_ == 1; }

  // Returns the largest number of blocks of a strip. With at most 1024 threads in a row of a strip, the arrays' rows
  // above and below usually stay in the first cache.
  [[nodiscard]] std::uint32_t strip_blocks() const { return std::max(1U, 1024 / configuration_.block.x); }

  [[nodiscard]] static dimensions cluster_size(const launch_configuration& c) {
    if (c.cluster) return *c.cluster;
    const auto& own = c.kernel->cluster;
    return own[0] == 0 ? dimensions{} : dimensions{own[0], own[1], own[2]};
  }

  // Returns the position of a cluster in the grid of clusters. A cluster that follows the previous cluster needs no
  // division.
  const dimensions& place_of(std::uint64_t cluster) {
    if (cluster == following_ && place_.x + 1 < clusters_.x) {
      ++place_.x;
    } else {
      place_.x = static_cast<std::uint32_t>(cluster % clusters_.x);
      place_.y = static_cast<std::uint32_t>(cluster / clusters_.x % clusters_.y);
      place_.z = static_cast<std::uint32_t>(cluster / clusters_.x / clusters_.y);
    }
    following_ = cluster + 1;
    return place_;
  }

  [[nodiscard]] std::unique_ptr<seat> make_seat() const {
    auto made = std::make_unique<seat>();
    made->cluster.size = size_;
    made->cluster.is_explicit = configuration_.cluster.has_value() || configuration_.kernel->cluster[0] != 0;
    for (std::uint64_t n = 0; n < size_.count(); ++n) {
      auto runs = engines_();
      auto block = std::make_unique<scheduler>(*runs, configuration_);
      made->residents.push_back({std::move(runs), std::move(block), true});
    }
    if (configuration_.races != nullptr)
      made->races =
          std::make_unique<race_finder>(*configuration_.races, static_cast<std::uint32_t>(configuration_.block.count()),
                                        static_cast<std::uint32_t>(size_.count()));
    made->cluster.races = made->races.get();
    return made;
  }

  // Returns the number of clusters that may be resident. One CPU thread may have to run all blocks that CUDA reports as
  // resident on the device, so the limit is the limit of the whole device, or more if the blocks are small.
  [[nodiscard]] std::size_t most_seats() const {
    constexpr std::size_t most_blocks = 1024, most_bytes = std::size_t{256} << 20;
    const std::size_t blocks = std::min(most_bytes / seats_.front()->residents.front().block->bytes(), most_blocks);
    return std::max<std::size_t>(1, std::max<std::size_t>(blocks, room_.least) / size_.count());
  }

  // Advances each block of a cluster once. Returns whether a block ended or the cluster completed a phase of its
  // barrier.
  bool take_turn(seat& here) {
    bool is_progress = false, all_have_ended = true, all_wait = true;
    for (resident& r : here.residents) {
      if (r.has_ended) continue;
      const scheduler::state now = r.block->advance();
      r.has_ended = now == scheduler::state::ended;
      if (!r.has_ended && leave_ != nullptr && leave_->meter.is_exceeded()) move(r);
      is_progress |= r.has_ended;
      all_have_ended &= r.has_ended;
      all_wait &= now == scheduler::state::waiting;
    }
    if (all_have_ended) {
      here.is_taken = false;
      --taken_;
      return true;
    }
    const std::uint64_t phase = here.cluster.phases + 1;
    if (std::all_of(here.residents.begin(), here.residents.end(),
                    [phase](const resident& r) { return r.block->has_arrived(phase); })) {
      here.cluster.phases = phase;
      return true;
    }
    if (all_wait)
      std::find_if(here.residents.begin(), here.residents.end(), [](const resident& r) {
        return !r.has_ended;
      })->block->report_deadlock();
    return is_progress;
  }

  // Lets a block leave its interpreter, if it has not left it before.
  void move(resident& r) {
    if (r.has_left) return;
    auto next = leave_->successor();
    if (next == nullptr) return;
    r.block->move_to(*next, *configuration_.kernel);
    r.runs = std::move(next);
    r.has_left = true;
  }

  const launch_configuration& configuration_;
  const std::function<std::shared_ptr<execution_engine>()> engines_;
  const block_room room_;
  const dimensions size_;
  const std::uint64_t blocks_of_cluster_ = size_.count();
  const bool in_strips_;
  const handover* const leave_;
  dimensions clusters_;             // the size of the grid in clusters
  dimensions place_;                // the position of the last cluster that became resident
  std::uint64_t following_ = none;  // the number of the last cluster that became resident, plus 1
  std::vector<std::unique_ptr<seat>> seats_;
  std::size_t taken_ = 0;
};

// Runs blocks like run_blocks or, if `leave` is not null, like run_until_handover.
std::optional<trap> run_range(execution_engine& runs, const launch_configuration& configuration, block_range& blocks,
                              const std::function<std::optional<block_range>()>& more, const block_room& room,
                              const handover* leave) {
  // The caller owns this engine, so the pointer does not delete it.
  std::shared_ptr<execution_engine> first(&runs, [](execution_engine*) {});
  try {
    // The blocks of a strip use the same shared memory.
    const bool in_strips = configuration.kernel->shared_size == 0 && configuration.dynamic_shared == 0 &&
                           configuration.races == nullptr && runs.runs_strips();
    gang residents(
        configuration, [&] { return first != nullptr ? std::exchange(first, nullptr) : runs.another(); }, room,
        in_strips, leave);
    const auto next = [&] {
      if (leave != nullptr && residents.is_empty() && leave->meter.is_used_up()) return gang::none;
      for (;;) {
        while (blocks.begin < blocks.end) {
          const std::uint64_t cluster = residents.cluster_that_begins(blocks.begin++);
          if (cluster != gang::none) return cluster;
        }
        const auto others = more ? more() : std::nullopt;
        if (!others) return gang::none;
        blocks = *others;
      }
    };
    const auto follow = [&](std::uint32_t most) {
      const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(most, blocks.end - blocks.begin));
      blocks.begin += count;
      return count;
    };
    residents.run(next, follow);
  } catch (const trap_exception& stopped) {
    return stopped.trap;
  }
  return std::nullopt;
}

}  // namespace

std::optional<trap> run_blocks(execution_engine& runs, const launch_configuration& configuration, block_range blocks,
                               const std::function<std::optional<block_range>()>& more, const block_room& room) {
  return run_range(runs, configuration, blocks, more, room, nullptr);
}

std::optional<trap> run_until_handover(interpreter& runs, const launch_configuration& configuration,
                                       block_range& blocks, const std::function<std::optional<block_range>()>& more,
                                       const block_room& room, const handover& leave) {
  return run_range(runs, configuration, blocks, more, room, &leave);
}

std::optional<trap> run_together(const std::function<std::shared_ptr<execution_engine>()>& engines,
                                 const launch_configuration& given) {
  // %envreg1 and %envreg2 contain the address of this workspace. Cooperative groups read the size of the workspace from
  // the first word; grid.sync counts in another word.
  alignas(16) std::uint32_t workspace[4] = {16, 0, 0, 0};
  launch_configuration configuration = given;
  if (configuration.workspace == nullptr) configuration.workspace = workspace;
  try {
    gang residents(configuration, engines);
    for (std::uint64_t n = 0; n < residents.cluster_count(); ++n) residents.admit(n);
    residents.run([] { return gang::none; }, [](std::uint32_t) { return 0U; });
  } catch (const trap_exception& stopped) {
    return stopped.trap;
  }
  return std::nullopt;
}

void land_page_fault(std::uint64_t address) {
  block_context* const block = scheduler::running();
  if (block == nullptr || !block->in_compiled_code) return;
  // longjmp leaves the signal handler, but does not restore the signal mask, so this function restores it.
  sigset_t faults;
  sigemptyset(&faults);
  sigaddset(&faults, SIGSEGV);
  sigaddset(&faults, SIGBUS);
  ::pthread_sigmask(SIG_UNBLOCK, &faults, nullptr);
  block->fail(trap::reason::address, address, "");
}

}  // namespace hpe::ptx
