#include "runtime/ptx/flow/lanes.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>

#include "runtime/ptx/execution/thread_memory.h"
#include "runtime/ptx/program/call_graph.h"
#include "runtime/ptx/program/special_register.h"

namespace hpe::ptx {

namespace {

constexpr std::uint32_t not_reached = ~0U;

bool is_own_memory(const operand& o) {  // whether the operand is in memory of a single thread
  return o.what == operand::kind::scratch || o.what == operand::kind::local;
}

lane_shape joined(const lane_shape& a, const lane_shape& b) {
  if (a.what == lane_shape::kind::unknown) return b;
  if (b.what == lane_shape::kind::unknown) return a;
  if (a.what != b.what || a.step != b.step) return {lane_shape::kind::varying};
  return {a.what, a.step, a.is_aligned && b.is_aligned};
}

constexpr lane_shape unknown, uniform{lane_shape::kind::uniform}, varying{lane_shape::kind::varying};

lane_shape with_step(lane_shape::kind what, std::int64_t step, bool is_aligned = false) {
  constexpr std::int64_t most = 1 << 20;
  if (step == 0) return uniform;
  if (step > most || step < -most) return varying;
  return {what, step, is_aligned && step == 1};
}

// Returns the value of an immediate if it fits into 32 bits with its sign.
std::optional<std::int64_t> constant(const operand& o, unsigned bits) {
  if (o.what != operand::kind::immediate) return std::nullopt;
  const auto whole = static_cast<std::int64_t>(o.value);
  const auto low = static_cast<std::int32_t>(o.value);
  if (bits == 32 || low == whole) return low;
  return std::nullopt;
}

}  // namespace

bool runs_in_lanes(const instruction& i) {
  for (const operand& o : i.sources)
    if (is_own_memory(o)) return false;
  switch (i.kind) {
    case kind::nothing:
    case kind::pure:
    case kind::fence:
    case kind::branch:
    case kind::exit:
    case kind::ret: return true;
    case kind::special: {
      const auto which = static_cast<special_register>(i.sources[0].value);
      if (i.guard.is_register()) return false;
      return which <= special_register::warpid ||
             (which >= special_register::lanemask_eq && which <= special_register::lanemask_gt);
    }
    case kind::load:
    case kind::store:
      return i.op != opcode::wmma && !i.is_strong() && bytes_of(i.types[0]) <= 8 &&
             window_of(i) != address_window::cluster_shared;
    case kind::atomic: return window_of(i) != address_window::cluster_shared;
    case kind::address_space:
      return !i.guard.is_register() && i.op == opcode::cvta &&
             (window_of(i) == address_window::generic || (is_shared_access(i) && !i.has(modifier::to)));
    default: return i.op != opcode::pause && is_meeting(i);
  }
}

bool is_passable(const instruction& i) { return i.kind == kind::warp && !i.guard.is_register(); }

std::vector<std::set<std::uint32_t>> outcomes_of(const lane_region& region, const control_flow& flow,
                                                 const std::vector<instruction>& code, std::uint32_t block,
                                                 bool is_uniform) {
  const basic_block& b = flow.blocks()[block];
  const instruction& end = code[b.last - 1];
  const std::uint32_t after = flow.block_at(b.last);
  std::uint32_t taken = after;
  if (region.has_passage(end)) return {{after}, {lane_region::gone}};
  if (ends_region(end)) taken = lane_region::gone;
  if (end.kind == kind::branch) taken = flow.block_at(end.targets[0]);
  if (!end.guard.is_register() || taken == after) return {{taken}};
  if (is_uniform) return {{taken}, {after}};
  return {{taken, after}};
}

// Returns the sort key of `other`. After `block`, the code checks for each block whether lanes wait for it, in
// ascending order of these keys. Blocks after `block` in `order` come first. The header of a loop that contains `block`
// follows the loop's last block; the header of an inner loop precedes the header of an outer loop.
std::pair<std::uint64_t, std::uint64_t> lane_region::turn(std::uint32_t block, std::uint32_t other) const {
  if (position[other] > position[block]) return {2 * std::uint64_t{position[other]}, 0};
  return {2 * std::uint64_t{loop_end[other]} + 1, order.size() - position[other]};
}

std::vector<std::uint32_t> lane_region::next(std::uint32_t block, const std::set<std::uint32_t>& outcome) const {
  std::set<std::uint32_t> all = waiting[block];
  all.insert(outcome.begin(), outcome.end());
  all.erase(gone);
  std::vector<std::uint32_t> result(all.begin(), all.end());
  const auto earlier = [&](std::uint32_t a, std::uint32_t b) { return turn(block, a) < turn(block, b); };
  std::sort(result.begin(), result.end(), earlier);
  if (outcome.contains(gone)) return result;
  const std::uint32_t sure = *std::max_element(outcome.begin(), outcome.end(), earlier);
  result.erase(std::find(result.begin(), result.end(), sure) + 1, result.end());
  return result;
}

lane_analysis::lane_analysis(unsigned count, const std::vector<instruction>& code, const std::vector<type>& registers,
                             const control_flow& flow, const std::vector<std::uint32_t>& starts)
    : count_(count), code_(code), registers_(registers), flow_(flow), is_varying_(registers.size()) {
  find_regions(starts);
  if (std::none_of(regions_.begin(), regions_.end(), [](const lane_region& r) { return r.is_possible; })) return;
  do {
    find_shapes();
    for (lane_region& region : regions_)
      if (region.is_possible) find_waiting(region);
  } while (force_varying());
  is_loaded_ = find_loaded();
}

// The lanes of a region that begins at the kernel's entry or after a barrier of the block pass the meetings of warps if
// all code of the region runs in lanes and no loop of the region may wait for another warp. Otherwise threads often
// continue in the regions after these meetings, so those regions are treated in the same way. Threads rarely reach the
// other regions, so these get only the shorter code that runs one thread after the other.
void lane_analysis::find_regions(const std::vector<std::uint32_t>& starts) {
  std::map<std::uint32_t, std::size_t> behind;  // by first block: the region after a passable meeting
  std::vector<std::size_t> open;
  std::vector<bool> is_usual(starts.size());
  for (std::size_t n = 0; n < starts.size(); ++n) {
    lane_region region;
    region.first = starts[n];
    regions_.push_back(region);
    const bool follows_passage = n != 0 && count_ == warp_size && starts[n] < flow_.blocks().size() &&
                                 is_passable(code_[flow_.blocks()[starts[n]].first - 1]);
    if (follows_passage) behind[starts[n]] = n;
    if (!follows_passage) open.push_back(n);
  }
  while (!open.empty()) {
    const std::size_t n = open.back();
    open.pop_back();
    if (is_usual[n]) continue;
    is_usual[n] = true;
    lane_region& region = regions_[n];
    if (!behind.empty()) {
      region.passes = true;
      order_blocks(region);
      if (region.is_possible && !may_wait_for_others(region)) continue;
      region = {};
      region.first = starts[n];
    }
    order_blocks(region);
    for (const std::uint32_t block : blocks_behind(region.first))
      if (const auto found = behind.find(block); found != behind.end()) open.push_back(found->second);
  }
}

// Returns the blocks after the meetings that threads may reach next from block `first`.
std::vector<std::uint32_t> lane_analysis::blocks_behind(std::uint32_t first) const {
  std::vector<std::uint32_t> result, open{first};
  std::vector<bool> is_seen(flow_.blocks().size());
  while (!open.empty()) {
    const std::uint32_t block = open.back();
    open.pop_back();
    if (block >= is_seen.size() || is_seen[block]) continue;
    is_seen[block] = true;
    const basic_block& b = flow_.blocks()[block];
    std::vector<std::uint32_t>& to = is_meeting(code_[b.last - 1]) ? result : open;
    to.insert(to.end(), b.successors.begin(), b.successors.end());
  }
  return result;
}

// Returns whether the region has a loop that contains meetings and may wait for another warp. At these meetings, a warp
// must leave the code, because otherwise the other warp does not run. A loop may wait if it reads the result of an
// atomic operation, or if only values from memory decide when the loop ends. Most such loops contain a pause
// (insert_pauses), and a loop with a pause does not run in lanes.
bool lane_analysis::may_wait_for_others(const lane_region& region) const {
  const auto is_read = [&](std::uint32_t r) {
    return std::any_of(code_.begin(), code_.end(), [&](const instruction& i) {
      return (i.guard.is_register() && i.guard.index == r) ||
             std::any_of(i.sources.begin(), i.sources.end(),
                         [&](const operand& o) { return o.is_register() && o.index == r; });
    });
  };
  for (const std::uint32_t header : region.order) {
    bool has_atomic = false, has_passage = false;
    if (region.loop_end[header] == 0) continue;
    for (std::uint32_t place = region.position[header]; place <= region.loop_end[header]; ++place) {
      const basic_block& b = flow_.blocks()[region.order[place]];
      for (std::uint32_t n = b.first; n < b.last; ++n) {
        const instruction& i = code_[n];
        has_atomic |=
            i.kind == kind::atomic && !i.results.empty() && i.results[0].is_register() && is_read(i.results[0].index);
        has_passage |= region.has_passage(i);
      }
    }
    if (has_passage && (has_atomic || ends_by_memory_alone(region, header))) return true;
  }
  return false;
}

// Whether a branch out of the loop depends on a load from an address that is the same in each iteration, and on nothing
// else that changes in the loop.
bool lane_analysis::ends_by_memory_alone(const lane_region& region, std::uint32_t header) const {
  enum class change : std::uint8_t { none, by_memory, any };  // how a register changes from one iteration to the next
  std::vector<change> changes(registers_.size(), change::none);
  const auto for_all = [&](const auto& look) {
    for (std::uint32_t place = region.position[header]; place <= region.loop_end[header]; ++place) {
      const basic_block& b = flow_.blocks()[region.order[place]];
      for (std::uint32_t n = b.first; n < b.last; ++n) look(code_[n], place);
    }
  };
  const auto change_of = [&](const operand& o) { return o.is_register() ? changes[o.index] : change::none; };
  const auto result_of = [&](const instruction& i) {
    change most = change_of(i.guard);
    for (const operand& o : i.sources) most = std::max(most, change_of(o));
    switch (i.kind) {
      case kind::pure:
      case kind::special:
      case kind::address_space:
      case kind::warp: return most;
      case kind::load:
        return i.sources[0].what == operand::kind::formal || most != change::none ? most : change::by_memory;
      default: return change::any;
    }
  };
  // Begins with the class `any` for all written registers, so that loop counters keep this class.
  std::vector<std::uint32_t> written;  // in the order of the code, so that few rounds suffice
  std::map<std::uint32_t, std::vector<const instruction*>> writers;
  for_all([&](const instruction& i, std::uint32_t) {
    for (const operand& o : i.results) {
      if (!o.is_register()) continue;
      changes[o.index] = change::any;
      std::vector<const instruction*>& all = writers[o.index];
      if (all.empty()) written.push_back(o.index);
      all.push_back(&i);
    }
  });
  for (bool changed = true; changed;) {
    changed = false;
    for (const std::uint32_t r : written) {
      change most = change::none;
      for (const instruction* const i : writers[r]) most = std::max(most, result_of(*i));
      changed |= most != changes[r];
      changes[r] = most;
    }
  }
  bool found = false;
  for_all([&](const instruction& i, std::uint32_t place) {
    if (change_of(i.guard) != change::by_memory) return;
    const auto is_outside = [&](std::uint32_t block) {
      const std::uint32_t at = region.position[block];
      return at == not_reached || at < region.position[header] || at > region.loop_end[header];
    };
    const auto& successors = flow_.blocks()[region.order[place]].successors;
    found |= (i.kind == kind::exit || i.kind == kind::ret) ||
             (i.kind == kind::branch && std::any_of(successors.begin(), successors.end(), is_outside));
  });
  return found;
}

lane_shape lane_analysis::shape_of(const operand& o) const {
  if (is_own_memory(o)) return varying;
  return o.is_register() ? shapes_[o.index] : uniform;
}

std::int64_t step_of_size(const instruction& i) {
  return (std::int64_t{bytes_of(i.types[0])} * i.vector) << record_shift(i);
}

bool lane_analysis::has_step_of_size(const instruction& i) const {
  const lane_shape shape = shape_of(i.sources[0]);
  return shape.has_step() && shape.step == step_of_size(i);
}

bool lane_analysis::has_small_gaps(const instruction& i) const {
  constexpr std::int64_t most = 4;  // the largest distance of adjacent lanes, in elements
  const std::int64_t bytes = bytes_of(i.types[0]);
  const lane_shape shape = shape_of(i.sources[0]);
  return i.vector == 1 && shape.has_step() && shape.step % bytes == 0 && std::abs(shape.step) > bytes &&
         std::abs(shape.step) <= most * bytes;
}

// Stores the blocks of a region in reverse postorder, with the blocks of each loop directly after the loop's header.
// Leaves is_possible false if an instruction cannot run in lanes, or if a loop has several entries.
void lane_analysis::order_blocks(lane_region& region) const {
  const std::size_t count = flow_.blocks().size();
  if (region.first >= count) return;
  const auto successors = [&](std::uint32_t block) {
    std::vector<std::uint32_t> result;
    for (const auto& outcome : outcomes_of(region, flow_, code_, block, false))
      for (const std::uint32_t to : outcome)
        if (to != lane_region::gone) result.push_back(to);
    return result;
  };
  enum class state : std::uint8_t { unseen, open, closed };
  std::vector<state> states(count);
  std::vector<std::uint32_t> postorder;
  std::vector<std::vector<std::uint32_t>> before(count);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> back;  // from, to
  std::vector<std::pair<std::uint32_t, std::vector<std::uint32_t>>> path;
  const auto enter = [&](std::uint32_t block) {
    states[block] = state::open;
    path.emplace_back(block, successors(block));
  };
  enter(region.first);
  while (!path.empty()) {
    const std::uint32_t block = path.back().first;
    if (path.back().second.empty()) {
      states[block] = state::closed;
      postorder.push_back(block);
      path.pop_back();
      continue;
    }
    const std::uint32_t to = path.back().second.back();
    path.back().second.pop_back();
    if (to >= count) return;
    before[to].push_back(block);
    if (states[to] == state::open) back.emplace_back(block, to);
    if (states[to] == state::unseen) enter(to);
  }
  for (const std::uint32_t block : postorder) {
    const basic_block& b = flow_.blocks()[block];
    for (std::uint32_t n = b.first; n < b.last; ++n)
      if (!runs_in_lanes(code_[n]) && code_[n].kind != kind::trap) return;
    if (code_[b.last - 1].kind == kind::trap) return;
  }
  const std::vector<std::uint32_t> reversed(postorder.rbegin(), postorder.rend());

  std::vector<std::set<std::uint32_t>> loops(count);  // by header
  for (const auto& [from, header] : back) {
    std::set<std::uint32_t>& loop = loops[header];
    loop.insert(header);
    std::vector<std::uint32_t> open{from};
    while (!open.empty()) {
      const std::uint32_t block = open.back();
      open.pop_back();
      if (block == region.first && block != header) return;  // the loop has a second entry
      if (loop.insert(block).second) open.insert(open.end(), before[block].begin(), before[block].end());
    }
  }
  region.position.assign(count, not_reached);
  region.loop_end.assign(count, 0);
  const auto place = [&](const auto& self, const std::set<std::uint32_t>* within) -> void {
    for (const std::uint32_t block : reversed) {
      if (region.position[block] != not_reached || (within != nullptr && !within->contains(block))) continue;
      region.position[block] = static_cast<std::uint32_t>(region.order.size());
      region.order.push_back(block);
      if (loops[block].empty()) continue;
      self(self, &loops[block]);
      region.loop_end[block] = static_cast<std::uint32_t>(region.order.size() - 1);
    }
  };
  place(place, nullptr);
  // Every backward edge must lead to the header of a loop that contains the block where the edge begins.
  for (const std::uint32_t block : region.order)
    for (const std::uint32_t to : successors(block))
      if (region.position[to] <= region.position[block] && !loops[to].contains(block)) return;
  region.is_possible = true;
}

void lane_analysis::find_waiting(lane_region& region) const {
  region.waiting.assign(flow_.blocks().size(), {});
  std::vector<bool> is_reached(flow_.blocks().size());
  std::vector<std::uint32_t> open{region.first};
  is_reached[region.first] = true;
  while (!open.empty()) {
    const std::uint32_t block = open.back();
    open.pop_back();
    const instruction& end = code_[flow_.blocks()[block].last - 1];
    const bool is_uniform = shape_of(end.guard).what <= lane_shape::kind::uniform;
    for (const auto& outcome : outcomes_of(region, flow_, code_, block, is_uniform)) {
      std::set<std::uint32_t> all = region.waiting[block];
      all.insert(outcome.begin(), outcome.end());
      for (const std::uint32_t to : region.next(block, outcome)) {
        // next() lists the blocks in the order in which the code checks them. If the code continues with `to`, no lane
        // waits for the blocks before `to`, and the lanes that waited for `to` run.
        all.erase(to);
        const std::size_t before = region.waiting[to].size();
        region.waiting[to].insert(all.begin(), all.end());
        if (is_reached[to] && region.waiting[to].size() == before) continue;
        is_reached[to] = true;
        open.push_back(to);
      }
    }
  }
}

// Begins with unknown shapes, and joins the results of all writes until no shape changes.
void lane_analysis::find_shapes() {
  shapes_.assign(registers_.size(), unknown);
  const auto write = [&](std::uint32_t r, const lane_shape& s) {
    const lane_shape after = joined(shapes_[r], is_varying_[r] ? varying : s);
    const bool changed = after != shapes_[r];
    shapes_[r] = after;
    return changed;
  };
  for (const std::uint32_t r : flow_.alive_at(0).members())
    write(r, uniform);  // registers that no instruction has written are zero
  for (bool changed = true; changed;) {
    changed = false;
    for (const instruction& i : code_) {
      lane_shape result = result_of(i);
      if (i.guard.is_register() && shape_of(i.guard).what > lane_shape::kind::uniform) result = varying;
      for (const operand& o : i.results)
        if (o.is_register()) changed |= write(o.index, result);
    }
  }
}

// Sets the shape `varying` for each register that some lanes write while other lanes wait for a block that reads the
// register's old value. Returns whether a shape has changed.
bool lane_analysis::force_varying() {
  bool changed = false;
  for (const lane_region& region : regions_) {
    if (!region.is_possible) continue;
    for (const std::uint32_t block : region.order) {
      const basic_block& b = flow_.blocks()[block];
      for (const std::uint32_t other : region.waiting[block]) {
        if (other == lane_region::gone) continue;
        for (std::uint32_t n = b.first; n < b.last; ++n)
          for (const operand& o : code_[n].results) {
            if (!o.is_register() || is_varying_[o.index] || !flow_.alive_at(other).has(o.index)) continue;
            is_varying_[o.index] = true;
            changed |= shapes_[o.index].what != lane_shape::kind::varying;
          }
      }
    }
  }
  return changed;
}

lane_shape lane_analysis::result_of(const instruction& i) const {
  switch (i.kind) {
    case kind::pure: return result_of_pure(i);
    case kind::special: {
      using enum special_register;
      const auto which = static_cast<special_register>(i.sources[0].value);
      if (which == tid_x || which == laneid) return with_step(lane_shape::kind::linear, 1, true);
      return which >= tid_y && which <= warpid ? uniform : varying;
    }
    case kind::load:
      return i.is_strong() || i.op == opcode::wmma || window_of(i) == address_window::cluster_shared ||
                     is_own_memory(i.sources[0])
                 ? varying
             : shape_of(i.sources[0]).what <= lane_shape::kind::uniform ? shape_of(i.sources[0])
                                                                        : varying;
    case kind::address_space: return runs_in_lanes(i) ? shape_of(i.sources[0]) : varying;
    case kind::warp: return result_of_meeting(i);
    default: return varying;
  }
}

// Votes, redux, activemask and match.all have the same result in all lanes of one mask; shuffles and match.any do not.
lane_shape lane_analysis::result_of_meeting(const instruction& i) const {
  const bool is_common = i.op == opcode::vote || i.op == opcode::redux || i.op == opcode::activemask ||
                         (i.op == opcode::match && i.has(modifier::all));
  if (count_ != warp_size || !is_common) return varying;
  return i.sources.empty()                                              ? uniform
         : shape_of(i.sources.back()).what <= lane_shape::kind::uniform ? shape_of(i.sources.back())
                                                                        : varying;
}

lane_shape lane_analysis::result_of_pure(const instruction& i) const {
  bool all_uniform = true;
  for (const operand& o : i.sources) {
    const lane_shape s = shape_of(o);
    if (s.what == lane_shape::kind::unknown) return unknown;
    all_uniform &= s.is_uniform();
  }
  if (all_uniform) return uniform;
  const type t = i.types[0];
  const unsigned bits = bits_of(t);
  if (is_float(t) || (bits != 32 && bits != 64) || i.has(modifier::sat)) return varying;
  const auto shape = [&](std::size_t n) { return shape_of(i.sources[n]); };
  const auto sum = [](const lane_shape& a, const lane_shape& b, std::int64_t sign) -> lane_shape {
    using enum lane_shape::kind;
    if (a.what == varying || b.what == varying) return ptx::varying;
    if (a.what == widened || b.what == widened)
      return a.is_uniform() || b.is_uniform() ? with_step(widened, a.step + sign * b.step) : ptx::varying;
    return with_step(linear, a.step + sign * b.step);
  };
  // Returns the shape of the product of a value (which must have a step) and a constant.
  const auto product = [&](const lane_shape& a, const operand& by, bool widens) -> lane_shape {
    const auto factor = constant(by, bits);
    if (!factor || !a.has_step() || (widens && a.what == lane_shape::kind::widened)) return varying;
    return with_step(widens ? lane_shape::kind::widened : a.what, a.step * *factor);
  };
  const auto any_product = [&]() -> lane_shape {
    if (shape(0).is_uniform() && shape(1).is_uniform()) return uniform;
    if (i.has(modifier::hi) || (i.has(modifier::wide) && bits != 32)) return varying;
    const lane_shape first = product(shape(0), i.sources[1], i.has(modifier::wide));
    return first.what == lane_shape::kind::varying ? product(shape(1), i.sources[0], i.has(modifier::wide)) : first;
  };
  switch (i.op) {
    case opcode::mov: return i.sources[0].negated ? varying : shape(0);
    case opcode::add: return sum(shape(0), shape(1), 1);
    case opcode::sub: return sum(shape(0), shape(1), -1);
    case opcode::mul: return any_product();
    case opcode::mad: return sum(any_product(), shape(2), 1);
    case opcode::shl: {
      const auto by = constant(i.sources[1], bits);
      if (!by || *by < 0 || *by > 20 || !shape(0).has_step()) return varying;
      return with_step(shape(0).what, shape(0).step << *by);
    }
    case opcode::shr: {
      const auto by = constant(i.sources[1], bits);
      return by && *by >= std::countr_zero(count_) && *by < 32 && shape(0).is_aligned ? uniform : varying;
    }
    case opcode::and_: {
      const auto mask = constant(i.sources[1], bits);
      if (!mask || !shape(0).is_aligned) return varying;
      const auto low = static_cast<std::uint32_t>(*mask) % count_;
      if (low == 0) return uniform;
      return low == count_ - 1 ? shape(0) : varying;
    }
    case opcode::cvt: {
      const type from = i.second_type();
      if (is_float(from) || shape(0).what != lane_shape::kind::linear) return varying;
      if (bits_of(from) == 32 && bits == 64) return with_step(lane_shape::kind::widened, shape(0).step);
      return bits_of(from) == bits ? shape(0) : varying;
    }
    default: return varying;
  }
}

}  // namespace hpe::ptx
