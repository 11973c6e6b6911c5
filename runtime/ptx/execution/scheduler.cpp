// Invariants: if together_ is a meeting point, all threads of the block continue after this point, and warps_ is not
// valid. If together_ is `mixed`, a thread t whose bit in warp::ready is set continues after the point next_[t]; any
// other thread waits at next_[t], or has ended.

#include "runtime/ptx/execution/scheduler.h"

#include <algorithm>
#include <bit>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/ptx/execution/thread_memory.h"
#include "runtime/ptx/program/call_graph.h"
#include "runtime/ptx/races/race_finder.h"

namespace hpe::ptx {

namespace {

constexpr std::int32_t turns_before_pause = 512;
// After this number of rounds of meetings, the scheduler also releases threads that wait at barriers or pause.
constexpr std::uint32_t rounds_before_others = 256;
// The number of rounds or barriers after which advance() returns, because threads may be waiting for other blocks.
constexpr std::uint32_t rounds_before_pause = 1 << 14;

thread_local block_context* in_this_thread = nullptr;

constexpr std::size_t cache_line = 64;  // in bytes; no vector register is larger

// Returns the first address in `memory` at which a cache line begins, because the access of a vector that crosses two
// lines is slower. The memory must be one line larger than needed.
template <class T>
T* on_cache_line(T* memory) {
  return reinterpret_cast<T*>((reinterpret_cast<std::uintptr_t>(memory) + cache_line - 1) / cache_line * cache_line);
}

bool calls(const function& kernel) {
  return std::any_of(kernel.code.begin(), kernel.code.end(), [](const instruction& i) { return i.kind == kind::call; });
}

}  // namespace

block_context* scheduler::running() { return in_this_thread; }

scheduler::scheduler(execution_engine& runs, const launch_configuration& configuration)
    : engine_(&runs),
      configuration_(configuration),
      shared_(round_up(configuration.kernel->shared_size, 16) + std::size_t{configuration.dynamic_shared}) {
  const auto threads = static_cast<std::uint32_t>(configuration.block.count());
  block_.configuration = &configuration;
  block_.thread_count = threads;
  block_.ntid = configuration.block;
  block_.nctaid = configuration.grid;
  block_.parameters = static_cast<const std::uint8_t*>(configuration.parameters);
  block_.static_shared_size = static_cast<std::uint32_t>(round_up(configuration.kernel->shared_size, 16));
  block_.dynamic_shared_offset = block_.static_shared_size;
  block_.dynamic_shared_size = configuration.dynamic_shared;
  block_.shared = shared_.data();

  // The padding puts the stacks of adjacent threads in different cache sets. If the stride were a power of two, the
  // variables of all threads would share few cache sets.
  block_.local_stride =
      round_up(configuration.kernel->local_size + (calls(*configuration.kernel) ? configuration.local_limit : 0), 64) +
      64;
  local_.resize(block_.local_stride * threads + cache_line);
  block_.local = on_cache_line(local_.data());

  bases_.resize(threads);
  block_.bases = bases_.data();
  make_frame();
  next_.resize(threads);
  block_.next = next_.data();
  warps_.resize((threads + warp_size - 1) / warp_size);
  for (std::uint32_t t = 0; t < threads; ++t) warps_[t / warp_size].lanes |= 1U << (t % warp_size);
  for (auto* const ids : {&tid_x_, &tid_y_, &tid_z_}) ids->reserve(threads);
  for (std::uint32_t z = 0; z < configuration.block.z; ++z)
    for (std::uint32_t y = 0; y < configuration.block.y; ++y)
      for (std::uint32_t x = 0; x < configuration.block.x; ++x) {
        tid_x_.push_back(x);
        tid_y_.push_back(y);
        tid_z_.push_back(z);
      }
  block_.tid_x = tid_x_.data();
  block_.tid_y = tid_y_.data();
  block_.tid_z = tid_z_.data();
}

scheduler::~scheduler() = default;

void scheduler::make_frame() {
  const std::size_t slots = engine_->frame_slots();
  frame_.resize(slots * block_.thread_count + cache_line / sizeof frame_[0]);
  block_.frame = on_cache_line(frame_.data());
  if (slots == 0) return;
  for (std::uint32_t t = 0; t < block_.thread_count; ++t) bases_[t] = block_.frame + t;
  block_.register_stride = block_.thread_count;
}

void scheduler::move_to(execution_engine& engine, const function& kernel) {
  if (together_ != block_context::mixed) std::fill(next_.begin(), next_.end(), together_);
  std::vector<execution_engine::waiting_thread> threads(block_.thread_count);
  for (std::uint32_t t = 0; t < block_.thread_count; ++t) {
    if (next_[t] == block_context::ended) {
      threads[t].position = execution_engine::waiting_thread::ended;
    } else if (next_[t] == 0) {
      threads[t].position = execution_engine::waiting_thread::entry;
    } else {
      threads[t] = {static_cast<std::uint32_t>(&engine_->at(next_[t]) - kernel.code.data()), bases_[t]};
    }
  }
  engine_ = &engine;
  block_.races = nullptr;  // only interpreters find races
  make_frame();
  engine_->take_over(block_, threads);
  if (together_ != block_context::mixed) {
    together_ = next_[0];
  } else {
    for (std::uint32_t w = 0; w < warps_.size(); ++w) look_at(w);
  }
}

std::size_t scheduler::bytes() const {
  return sizeof *this + local_.size() + frame_.size() * sizeof frame_[0] + block_.dynamic_shared_offset +
         block_.dynamic_shared_size;
}

void scheduler::begin(std::uint32_t x, std::uint32_t y, std::uint32_t z, cluster_members* cluster) {
  block_.ctaid.x = x;
  block_.ctaid.y = y;
  block_.ctaid.z = z;
  block_.record_colour = block_colour(x, y, z) * block_.configuration->image->program().recorded.colour_stride;
  block_.cluster = cluster;
  block_.cluster_rank = 0;
  if (cluster != nullptr) {
    block_.cluster_rank = static_cast<std::uint32_t>(cluster->blocks.size());
    cluster->blocks.push_back(&block_);
    block_.races = cluster->races;
  }
  arrivals_.clear();
  together_ = 0;
  arrived_.fill(0);
  engine_->begin(block_);
}

namespace {

// Names the block that the calling thread runs, for running().
struct registration {
  explicit registration(block_context* b) : before(in_this_thread) { in_this_thread = b; }
  registration(const registration&) = delete;
  registration& operator=(const registration&) = delete;
  ~registration() { in_this_thread = before; }
  block_context* before;
};

}  // namespace

void scheduler::run_strip(std::uint32_t count) {
  const registration registered(&block_);
  engine_->run_strip(block_, count);
}

scheduler::state scheduler::advance() {
  const registration registered(&block_);
  block_.budget = turns_before_pause;
  if (together_ != block_context::mixed)
    if (const auto now = run_together()) return *now;
  for (std::uint32_t rounds = 1;; ++rounds) {
    run_ready();
    // Threads that meet repeatedly may be waiting for threads at a barrier or in a loop, or for other blocks.
    if (rounds % rounds_before_others == 0) {
      const bool have_met = meet_barriers(), have_arrived = meet_cluster();
      if (release_pauses() || rounds >= rounds_before_pause) return state::paused;
      if (have_met || have_arrived) continue;
    }
    if (meet_warps()) continue;
    if (std::all_of(warps_.begin(), warps_.end(), [](const warp& w) { return w.alive == 0; })) return state::ended;
    const bool alike = std::all_of(warps_.begin(), warps_.end(), [&](const warp& w) {
      return w.point == warps_[0].point && w.point != block_context::mixed;
    });
    if (alike && is_block_barrier(engine_->at(warps_[0].point))) {
      together_ = warps_[0].point;
      if (block_.races != nullptr) block_.races->meet_all(block_);
      if (const auto now = run_together()) return *now;
      continue;
    }
    if (meet_barriers() || meet_cluster()) continue;
    if (release_pauses()) return state::paused;
    if (!waits_for_cluster()) report_deadlock();
    return state::waiting;
  }
}

// Runs the threads of the block as long as all of them continue after the same point. Returns nothing if the threads
// have diverged.
std::optional<scheduler::state> scheduler::run_together() {
  const std::uint32_t threads = block_.thread_count;
  for (std::uint32_t rounds = 0; rounds < rounds_before_pause; ++rounds) {
    const bool finds_races = block_.races != nullptr;
    const std::uint32_t point = finds_races ? engine_->run(block_, together_, 0, threads)
                                            : engine_->run_block(block_, together_, rounds_before_pause);
    if (point == block_context::ended) return state::ended;
    together_ = point;
    if (point == block_context::mixed) {
      part();
      return std::nullopt;
    }
    const instruction& what = engine_->at(point);
    if (is_block_barrier(what)) {
      if (!finds_races) return state::paused;
      block_.races->meet_all(block_);
      continue;
    }
    std::fill(next_.begin(), next_.end(), point);  // the meetings below read next_; barriers of the whole block do not
    if (what.op == opcode::converge && stand_together()) {
      for (std::uint32_t w = 0; w < warps_.size(); ++w) note_lockstep(w);
      continue;
    }
    if (threads % warp_size != 0 || !names_all_lanes(what)) {
      part();
      return std::nullopt;
    }
    for (std::uint32_t first = 0; first < threads; first += warp_size) meet_together(block_, *engine_, what, first);
  }
  return state::paused;
}

// Returns whether the threads of each warp, which wait at the same point, have reached the point through the same
// calls.
bool scheduler::stand_together() const {
  for (std::uint32_t w = 0; w < warps_.size(); ++w)
    if (engine_->earliest(block_, w * warp_size, warps_[w].lanes) != warps_[w].lanes) return false;
  return true;
}

// Reports to the race finder that the lanes of a warp have passed a converge instruction: all earlier accesses of the
// lanes precede the next accesses of each lane.
void scheduler::note_lockstep(std::uint32_t w) {
  if (block_.races != nullptr) block_.races->meet_lanes(block_, w * warp_size, warps_[w].lanes);
}

// Switches from the whole block to single warps. All threads of the block must wait at a meeting.
void scheduler::part() {
  together_ = block_context::mixed;
  for (std::uint32_t w = 0; w < warps_.size(); ++w) {
    warps_[w].ready = 0;
    look_at(w);
  }
}

void scheduler::look_at(std::uint32_t w) {
  const std::uint32_t first = w * warp_size, last = std::min(first + warp_size, block_.thread_count);
  std::uint32_t alive = 0, different = 0;
  for (std::uint32_t t = first; t < last; ++t) {
    alive |= (next_[t] != block_context::ended ? 1U : 0U) << (t - first);
    different |= next_[t] ^ next_[first];
  }
  warps_[w].alive = alive;
  warps_[w].point = different == 0 ? next_[first] : block_context::mixed;
}

// Runs every ready thread. Adjacent threads that continue after the same point run together.
void scheduler::run_ready() {
  for (std::uint32_t w = 0; w < warps_.size(); ++w) {
    while (warps_[w].ready != 0) {
      const std::uint32_t first = w * warp_size + static_cast<std::uint32_t>(std::countr_zero(warps_[w].ready));
      const std::uint32_t point = next_[first];
      std::uint32_t last = first;
      std::uint32_t end = w;  // the warp of the last thread
      while (last < block_.thread_count && !waits(last) && next_[last] == point) {
        end = last / warp_size;
        warps_[end].ready &= ~(1U << (last % warp_size));
        ++last;
      }
      const std::uint32_t next = engine_->run(block_, point, first, last);
      if (next != block_context::mixed) std::fill(next_.begin() + first, next_.begin() + last, next);
      for (std::uint32_t done = w; done <= end; ++done) look_at(done);
    }
  }
}

// Returns whether an instruction is a meeting without a mask, which waits only for the lanes that can reach it.
bool scheduler::is_maskless(const instruction& what) {
  return what.op == opcode::activemask || what.op == opcode::converge;
}

// Returns whether the instruction itself shows that it is a meeting of all lanes of a warp (a matrix instruction, or a
// constant mask).
bool scheduler::is_whole(const instruction& what) {
  if (what.kind == kind::matrix) return true;
  if (what.kind != kind::warp || is_maskless(what)) return false;
  const operand& mask = what.sources.back();
  return mask.what == operand::kind::immediate && static_cast<std::uint32_t>(mask.value) == ~0U;
}

// Like is_whole, but also accepts masks in registers. All threads of the block must wait at the instruction.
bool scheduler::names_all_lanes(const instruction& what) const {
  if (is_whole(what)) return true;
  if (what.kind != kind::warp || is_maskless(what) || !what.sources.back().is_register()) return false;
  const std::uint32_t r = what.sources.back().index;
  for (std::uint32_t t = 0; t < block_.thread_count; ++t)
    if (static_cast<std::uint32_t>(block_.register_of(t, r)) != ~0U) return false;
  return true;
}

// Completes meetings of warps. Meetings with a mask come first. The function completes a meeting without a mask only
// when no other lane of the warp can advance, and only for the lanes at the earliest point, so that diverged lanes
// reconverge as on a GPU. A converge instruction also waits for paused lanes, because they may reach it later. Returns
// whether a meeting was completed.
bool scheduler::meet_warps() {
  bool any = false;
  for (std::uint32_t w = 0; w < warps_.size(); ++w) {
    warp& here = warps_[w];
    const std::uint32_t first = w * warp_size;
    if (here.alive == 0) continue;
    if (here.point != block_context::mixed && here.ready == 0) {
      const instruction& what = engine_->at(here.point);
      if (what.kind != kind::warp && what.kind != kind::matrix) continue;
      if (here.lanes == ~0U && is_whole(what)) {
        meet_together(block_, *engine_, what, first);
        here.ready = here.lanes;
        any = true;
        continue;
      }
      if (what.op == opcode::converge) {
        here.ready = engine_->earliest(block_, first, here.alive);
        note_lockstep(w);
        any = true;
        continue;
      }
    }
    std::uint32_t named = 0, asking = 0, strays = 0;
    bool pauses = false;
    for (std::uint32_t rest = here.alive & ~here.ready; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
      const instruction& what = engine_->at(next_[first + lane]);
      pauses |= what.kind == kind::pause;
      if (what.kind != kind::warp && what.kind != kind::matrix) continue;
      (is_maskless(what) ? asking : named) |= 1U << lane;
      strays |= (is_stray(lane, first + lane, what) ? 1U : 0U) << lane;
    }
    if (const std::uint32_t group = strays != 0 ? engine_->earliest(block_, first, named) & named : 0;
        (group & strays) != 0) {
      meet(block_, *engine_, first, group);
      here.ready |= group;
      any = true;
    } else if (meet_named(w, named)) {
      any = true;
    } else if (asking != 0) {
      const std::uint32_t group = engine_->earliest(block_, first, asking);
      const std::uint32_t point = next_[first + static_cast<std::uint32_t>(std::countr_zero(group))];
      if (pauses && engine_->at(point).op == opcode::converge) continue;
      meet(block_, *engine_, first, group);
      if (engine_->at(point).op == opcode::converge) note_lockstep(w);
      here.ready |= group;
      any = true;
    }
  }
  return any;
}

bool scheduler::meet_named(std::uint32_t w, std::uint32_t waiting) {
  const std::uint32_t first = w * warp_size, alive = warps_[w].alive;
  bool any = false;
  for (std::uint32_t open = waiting; open != 0;) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(open));
    const instruction& what = engine_->at(next_[first + lane]);
    const std::uint32_t wanted = mask_of(first + lane, what);
    if ((wanted >> lane & 1) == 0) {
      block_.current = first + lane;
      block_.fail(trap::reason::illegal, 0,
                  fmt::format("its lane {} is not in the mask {:#x} of '{}'", lane, wanted, text_of(what)));
    }
    std::uint32_t group = 0;
    for (std::uint32_t other = lane; other < warp_size; ++other) {
      if ((open >> other & 1) == 0 || (wanted >> other & 1) == 0) continue;
      const instruction& its = engine_->at(next_[first + other]);
      if (its.op == what.op && its.kind == what.kind && mask_of(first + other, its) == wanted) group |= 1U << other;
    }
    open &= ~group;
    if (group != (wanted & alive)) continue;  // some lanes have not arrived yet
    if (what.kind == kind::matrix) {
      meet_matrices(block_, what, first);
    } else {
      meet(block_, *engine_, first, group);
    }
    warps_[w].ready |= group;
    any = true;
  }
  return any;
}

// Returns whether the program runs in lockstep and the lane's mask does not contain the lane itself. GPUs do not check
// masks. In lockstep, all lanes that wait at the instruction take part.
bool scheduler::is_stray(std::uint32_t lane, std::uint32_t thread, const instruction& what) const {
  if (!configuration_.image->program().in_lockstep || is_maskless(what)) return false;
  return (mask_of(thread, what) >> lane & 1) == 0;
}

std::uint32_t scheduler::mask_of(std::uint32_t thread, const instruction& what) const {
  return what.kind == kind::matrix ? ~0U : static_cast<std::uint32_t>(value_of(block_, thread, what.sources.back()));
}

std::string scheduler::text_of(const instruction& what) const {
  return fmt::format("PTX line {}, '{}'", what.line,
                     configuration_.image->program().text_of(*configuration_.kernel, what));
}

// ---- barriers of blocks and clusters --------------------------------------------------------------------------------

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
    const instruction& what = engine_->at(next_[t]);
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
    const instruction& what = engine_->at(next_[t]);
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
    const instruction& what = engine_->at(next_[t]);
    if (what.kind != kind::barrier || !what.has(modifier::cluster)) continue;
    if (arrivals_.empty()) arrivals_.resize(block_.thread_count);
    // The race finder's flag alternates between 0 and 1, so two successive phases have different flags.
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
    if (!has_ended(t) && waits(t) && engine_->at(next_[t]).has(modifier::cluster)) return true;
  return false;
}

bool scheduler::release_pauses() {
  bool any = false;
  for (std::uint32_t t = 0; t < block_.thread_count; ++t) {
    if (!waits(t) || has_ended(t) || engine_->at(next_[t]).kind != kind::pause) continue;
    release(t);
    any = true;
  }
  return any;
}

void scheduler::report_deadlock() {
  for (std::uint32_t t = 0; t < block_.thread_count; ++t) {
    if (has_ended(t)) continue;
    block_.current = t;
    const instruction& what = engine_->at(next_[t]);
    block_.fail(trap::reason::deadlock, 0, text_of(what));
  }
  HPE_INVARIANT(!"a deadlock without threads");
}

}  // namespace hpe::ptx
