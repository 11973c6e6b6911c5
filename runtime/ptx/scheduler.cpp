// Invariants: a thread with waiting_[t] == 0 and next[t] != ended is ready to go on behind next[t]. A thread that waits does so
// at next[t]. Between calls of run_ready no thread is ready unless it was just released.

#include "runtime/ptx/scheduler.h"

#include <algorithm>
#include <bit>

#include "runtime/base/error.h"

namespace hpe::ptx {

namespace {

constexpr std::uint32_t warp_size = 32;
constexpr std::size_t shared_alignment = 1024;
constexpr std::int32_t turns_before_pause = 512;

thread_local block_context* in_this_thread = nullptr;

std::uint32_t rounded(std::uint64_t value, std::uint64_t step) { return static_cast<std::uint32_t>((value + step - 1) / step * step); }

bool calls(const function& kernel) {
  return std::any_of(kernel.code.begin(), kernel.code.end(), [](const instruction& i) { return i.kind == kind::call; });
}

}  // namespace

block_context* scheduler::running() { return in_this_thread; }

scheduler::scheduler(engine& runs, const launch_configuration& configuration) : engine_(runs), configuration_(configuration) {
  const auto threads = static_cast<std::uint32_t>(configuration.block.count());
  block_.configuration = &configuration;
  block_.thread_count = threads;
  block_.ntid = configuration.block;
  block_.nctaid = configuration.grid;
  block_.parameters = static_cast<const std::uint8_t*>(configuration.parameters);
  block_.static_shared_size = rounded(configuration.kernel->shared_size, 16);
  block_.dynamic_shared_offset = block_.static_shared_size;
  block_.dynamic_shared_size = configuration.dynamic_shared;
  memory_.resize(block_.dynamic_shared_offset + std::size_t{configuration.dynamic_shared} + shared_alignment + 16);
  const auto at = reinterpret_cast<std::uintptr_t>(memory_.data());
  block_.shared = memory_.data() + (rounded(at % shared_alignment, shared_alignment) - at % shared_alignment) % shared_alignment;

  // Lines of cache that neighbours' stacks would share are kept apart; a stride that is a power of two would put all
  // threads' variables into few sets.
  block_.local_stride = rounded(configuration.kernel->local_size + (calls(*configuration.kernel) ? configuration.local_limit : 0), 64) + 64;
  local_.resize(block_.local_stride * threads + 64);
  block_.local = local_.data() + (64 - reinterpret_cast<std::uintptr_t>(local_.data()) % 64) % 64;

  block_.frame_stride = threads;
  frame_.resize(std::size_t{engine_.frame_slots()} * threads);
  block_.frame = frame_.data();
  bases_.resize(threads);
  for (std::uint32_t t = 0; t < threads; ++t) bases_[t] = frame_.data() + t;
  block_.bases = bases_.data();
  block_.register_stride = threads;
  next_.resize(threads);
  block_.next = next_.data();
  waiting_.resize(threads);
  for (std::uint32_t t = 0; t < threads; ++t) {
    tid_x_.push_back(t % configuration.block.x);
    tid_y_.push_back(t / configuration.block.x % configuration.block.y);
    tid_z_.push_back(t / configuration.block.x / configuration.block.y);
  }
  block_.tid_x = tid_x_.data();
  block_.tid_y = tid_y_.data();
  block_.tid_z = tid_z_.data();
}

scheduler::~scheduler() = default;

void scheduler::begin(dimensions block) {
  block_.ctaid = block;
  std::fill(next_.begin(), next_.end(), 0);
  std::fill(waiting_.begin(), waiting_.end(), 0);
  arrived_.fill(0);
  engine_.begin(block_);
}

// Runs every ready thread, neighbours at the same point together.
void scheduler::run_ready() {
  struct registration {
    explicit registration(block_context* b) : before(in_this_thread) { in_this_thread = b; }
    ~registration() { in_this_thread = before; }
    block_context* before;
  } const registered(&block_);
  block_.budget = turns_before_pause;
  for (std::uint32_t t = 0; t < block_.thread_count;) {
    if (waits(t) || has_ended(t)) {
      ++t;
      continue;
    }
    const std::uint32_t point = next_[t];
    std::uint32_t last = t + 1;
    while (last < block_.thread_count && next_[last] == point && !waits(last)) ++last;
    engine_.run(block_, point, t, last);
    std::fill(waiting_.begin() + t, waiting_.begin() + last, 1);
    t = last;
  }
}

scheduler::state scheduler::advance() {
  for (;;) {
    run_ready();
    if (meet_uniform()) continue;
    if (std::all_of(next_.begin(), next_.end(), [](std::uint32_t n) { return n == block_context::ended; })) return state::ended;
    const bool met = meet_warps();
    if (meet_barriers() || met) {
      release_pauses();
      continue;
    }
    if (!release_pauses()) report_deadlock();
    return state::paused;
  }
}

void scheduler::release(std::uint32_t thread) { waiting_[thread] = 0; }

// The common case: all threads of the block wait at one point, for all of them or for their whole warp.
bool scheduler::meet_uniform() {
  const std::uint32_t point = next_[0];
  if (point == block_context::ended || point == 0) return false;
  if (!std::all_of(next_.begin(), next_.end(), [point](std::uint32_t n) { return n == point; })) return false;
  const instruction& what = engine_.at(point);
  if (what.kind == kind::barrier) {
    const bool plain = !what.has(modifier::red) && !what.has(modifier::arrive) && what.sources[1].what == operand::kind::none;
    if (!plain) return false;
  } else if (what.kind == kind::matrix) {
    if (block_.thread_count % warp_size != 0) return false;
    for (std::uint32_t first = 0; first < block_.thread_count; first += warp_size) multiply_matrices(block_, what, first);
  } else if (what.kind == kind::warp && block_.thread_count % warp_size == 0 && !what.sources.empty()) {
    const operand& mask = what.sources.back();
    if (mask.what != operand::kind::immediate || static_cast<std::uint32_t>(mask.value) != ~0U) return false;
    for (std::uint32_t first = 0; first < block_.thread_count; first += warp_size) meet(block_, engine_, first, ~0U);
  } else {
    return false;
  }
  std::fill(waiting_.begin(), waiting_.end(), 0);
  return true;
}

// Meetings that name their lanes come first. A lane asks which lanes are active only when no other lane of its warp can come
// nearer, and the one that is furthest behind asks first: so lanes that parted meet again, as on a GPU.
bool scheduler::meet_warps() {
  bool any = false;
  for (std::uint32_t first = 0; first < block_.thread_count; first += warp_size) {
    const std::uint32_t lanes = std::min(warp_size, block_.thread_count - first);
    std::uint32_t named = 0, asking = 0, alive = 0;
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
      const std::uint32_t t = first + lane;
      if (has_ended(t)) continue;
      alive |= 1U << lane;
      const instruction& what = engine_.at(next_[t]);
      if (!waits(t) || (what.kind != kind::warp && what.kind != kind::matrix)) continue;
      (what.op == opcode::activemask ? asking : named) |= 1U << lane;
    }
    if (meet_named(first, named, alive)) {
      any = true;
    } else if (asking != 0) {
      std::uint32_t earliest = block_context::ended, group = 0;
      for (std::uint32_t lane = 0; lane < lanes; ++lane)
        if ((asking >> lane & 1) != 0) earliest = std::min(earliest, next_[first + lane]);
      for (std::uint32_t lane = 0; lane < lanes; ++lane)
        if ((asking >> lane & 1) != 0 && next_[first + lane] == earliest) group |= 1U << lane;
      meet(block_, engine_, first, group);
      release(first, group);
      any = true;
    }
  }
  return any;
}

bool scheduler::meet_named(std::uint32_t first, std::uint32_t waiting, std::uint32_t alive) {
  bool any = false;
  for (std::uint32_t open = waiting; open != 0;) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(open));
    const instruction& what = engine_.at(next_[first + lane]);
    const std::uint32_t wanted = mask_of(first + lane, what);
    if ((wanted >> lane & 1) == 0) {
      block_.current = first + lane;
      block_.fail(fault::reason::illegal, 0, fmt::format("its lane {} is not in the mask {:#x} of '{}'", lane, wanted, text_of(what)));
    }
    std::uint32_t group = 0;
    for (std::uint32_t other = lane; other < warp_size; ++other) {
      if ((open >> other & 1) == 0 || (wanted >> other & 1) == 0) continue;
      const instruction& its = engine_.at(next_[first + other]);
      if (its.op == what.op && its.kind == what.kind && mask_of(first + other, its) == wanted) group |= 1U << other;
    }
    open &= ~group;
    if (group != (wanted & alive)) continue;  // some are still to come
    if (what.kind == kind::matrix) {
      multiply_matrices(block_, what, first);
    } else {
      meet(block_, engine_, first, group);
    }
    release(first, group);
    any = true;
  }
  return any;
}

std::uint32_t scheduler::mask_of(std::uint32_t thread, const instruction& what) const {
  return what.kind == kind::matrix ? ~0U : static_cast<std::uint32_t>(value_of(block_, thread, what.sources.back()));
}

void scheduler::release(std::uint32_t first, std::uint32_t lanes) {
  for (; lanes != 0; lanes &= lanes - 1) waiting_[first + static_cast<std::uint32_t>(std::countr_zero(lanes))] = 0;
}

std::string scheduler::text_of(const instruction& what) const {
  return fmt::format("PTX line {}, '{}'", what.line, configuration_.image->program().text_of(*configuration_.kernel, what));
}

bool scheduler::meet_barriers() {
  bool any = false;
  struct gathering {
    std::uint32_t waiting = 0;
    std::uint32_t wanted = 0;  // 0: all threads that have not ended
    bool all = true, some = false;
    std::uint32_t holding = 0;
  };
  std::array<gathering, 16> barriers;
  std::uint32_t alive = 0;
  const auto number_of = [&](std::uint32_t t, const instruction& what) {
    const std::uint64_t number = value_of(block_, t, what.sources[0]);
    block_.current = t;
    if (number >= barriers.size()) block_.fail(fault::reason::illegal, 0, fmt::format("there is no barrier {}", number));
    return number;
  };
  for (std::uint32_t t = 0; t < block_.thread_count; ++t) {
    if (has_ended(t)) continue;
    ++alive;
    const instruction& what = engine_.at(next_[t]);
    if (!waits(t) || what.kind != kind::barrier) continue;
    const std::uint64_t number = number_of(t, what);
    if (what.has(modifier::arrive)) {
      ++arrived_[number];
      release(t);
      any = true;
      continue;
    }
    gathering& b = barriers[number];
    ++b.waiting;
    if (what.sources[1].what != operand::kind::none) b.wanted = static_cast<std::uint32_t>(value_of(block_, t, what.sources[1]));
    if (what.sources[2].what == operand::kind::none) continue;
    const bool holds = value_of(block_, t, what.sources[2]) != 0;
    b.all &= holds;
    b.some |= holds;
    b.holding += holds ? 1 : 0;
  }
  for (std::uint32_t t = 0; t < block_.thread_count; ++t) {
    if (has_ended(t) || !waits(t)) continue;
    const instruction& what = engine_.at(next_[t]);
    if (what.kind != kind::barrier) continue;
    const std::uint64_t number = number_of(t, what);
    const gathering& b = barriers[number];
    if (b.wanted == 0 ? b.waiting != alive : b.waiting + arrived_[number] < std::min(b.wanted, alive + arrived_[number])) continue;
    if (!what.results.empty())
      set_result(block_, t, what.results[0], what.has(modifier::op_popc) ? b.holding : what.has(modifier::op_and) ? b.all : b.some);
    release(t);
    any = true;
  }
  for (std::size_t n = 0; n < barriers.size(); ++n)
    if (barriers[n].waiting > 0 && any && barriers[n].wanted != 0 && barriers[n].waiting + arrived_[n] >= barriers[n].wanted) arrived_[n] = 0;
  return any;
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
    block_.fail(fault::reason::deadlock, 0, text_of(what));
  }
  HPE_INVARIANT(!"a deadlock without threads");
}

}  // namespace hpe::ptx
