// Barriers of blocks and clusters.

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/ptx/execution/scheduler.h"
#include "runtime/ptx/races/race_finder.h"

namespace hpe::ptx {

bool scheduler::meet_barriers() {
  bool any = false;
  struct gathering {
    std::uint32_t waiting = 0;
    std::uint32_t wanted = 0;  // 0 means all threads that have not ended
    bool all = true, some = false;
    bool complete = false;
    std::uint32_t holding = 0;
  };
  std::array<gathering, 16> barriers;
  std::uint32_t alive = 0;
  const auto number_of = [&](std::uint32_t t, const instruction& what) {
    const std::uint64_t number = value_of(block_, t, what.sources[0]);
    block_.current = t;
    if (number >= barriers.size()) block_.fail(trap::reason::illegal, 0, fmt::format("there is no barrier {}", number));
    return number;
  };
  for (std::uint32_t t = 0; t < block_.thread_count; ++t) {
    if (has_ended(t)) continue;
    ++alive;
    const instruction& what = engine_.at(next_[t]);
    if (!waits(t) || what.kind != kind::barrier || what.has(modifier::cluster)) continue;
    const std::uint64_t number = number_of(t, what);
    if (what.has(modifier::arrive)) {
      if (block_.races != nullptr) block_.races->arrive(block_, t, static_cast<std::uint32_t>(number));
      ++arrived_[number];
      release(t);
      any = true;
      continue;
    }
    gathering& b = barriers[number];
    ++b.waiting;
    if (what.sources[1].what != operand::kind::none)
      b.wanted = static_cast<std::uint32_t>(value_of(block_, t, what.sources[1]));
    if (what.sources[2].what == operand::kind::none) continue;
    const bool holds = value_of(block_, t, what.sources[2]) != 0;
    b.all &= holds;
    b.some |= holds;
    b.holding += holds ? 1 : 0;
  }
  std::array<std::vector<std::uint32_t>, 16> met;
  for (std::uint32_t t = 0; t < block_.thread_count; ++t) {
    if (has_ended(t) || !waits(t)) continue;
    const instruction& what = engine_.at(next_[t]);
    if (what.kind != kind::barrier || what.has(modifier::cluster)) continue;
    const std::uint64_t number = number_of(t, what);
    gathering& b = barriers[number];
    if (b.wanted == 0 ? b.waiting != alive
                      : b.waiting + arrived_[number] < std::min(b.wanted, alive + arrived_[number]))
      continue;
    if (!what.results.empty())
      set_result(block_, t, what.results[0],
                 what.has(modifier::op_popc)  ? b.holding
                 : what.has(modifier::op_and) ? b.all
                                              : b.some);
    release(t);
    b.complete = true;
    any = true;
    if (block_.races != nullptr) met[number].push_back(t);
  }
  for (std::uint32_t n = 0; n < barriers.size(); ++n) {
    if (!barriers[n].complete) continue;
    arrived_[n] = 0;
    if (block_.races == nullptr) continue;
    // If all threads that have not ended are at the barrier, the barrier orders all accesses of the block, including
    // the accesses of threads that have ended.
    if (met[n].size() == alive) {
      block_.races->meet_all(block_);
    } else {
      block_.races->meet(block_, met[n], n);
    }
  }
  return any;
}

bool scheduler::has_arrived(std::uint64_t times) const {
  for (std::uint32_t t = 0; t < block_.thread_count; ++t)
    if (!has_ended(t) && (arrivals_.empty() ? 0 : arrivals_[t]) < times) return false;
  return true;
}

// Counts arrivals at the cluster's barrier, and releases the threads that wait for a complete phase. block_range.cpp
// completes phases between the turns of the blocks. Returns whether a thread can continue.
bool scheduler::meet_cluster() {
  bool any = false;
  for (std::uint32_t t = 0; t < block_.thread_count; ++t) {
    if (has_ended(t) || !waits(t)) continue;
    const instruction& what = engine_.at(next_[t]);
    if (what.kind != kind::barrier || !what.has(modifier::cluster)) continue;
    if (arrivals_.empty()) arrivals_.resize(block_.thread_count);
    // The race finder's flag is 0 or 1 in turns: two successive phases have different flags.
    if (what.has(modifier::arrive)) {
      ++arrivals_[t];
      if (block_.races != nullptr) block_.races->release(block_, t, arrivals_[t] % 2);
    } else if (block_.cluster == nullptr || block_.cluster->phases < arrivals_[t]) {
      continue;
    } else if (block_.races != nullptr) {
      block_.races->acquire(block_, t, arrivals_[t] % 2);
    }
    release(t);
    any = true;
  }
  return any;
}

bool scheduler::waits_for_cluster() const {
  for (std::uint32_t t = 0; t < block_.thread_count; ++t)
    if (!has_ended(t) && waits(t) && engine_.at(next_[t]).has(modifier::cluster)) return true;
  return false;
}

bool scheduler::release_pauses() {
  bool any = false;
  for (std::uint32_t t = 0; t < block_.thread_count; ++t) {
    if (!waits(t) || has_ended(t) || engine_.at(next_[t]).kind != kind::pause) continue;
    release(t);
    any = true;
  }
  return any;
}

void scheduler::report_deadlock() {
  for (std::uint32_t t = 0; t < block_.thread_count; ++t) {
    if (has_ended(t)) continue;
    block_.current = t;
    const instruction& what = engine_.at(next_[t]);
    block_.fail(trap::reason::deadlock, 0, text_of(what));
  }
  HPE_INVARIANT(!"a deadlock without threads");
}

}  // namespace hpe::ptx
