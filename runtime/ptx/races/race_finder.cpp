// Invariant: if a word's epoch is older than epoch_, the recorded accesses to the word are ordered before all later
// accesses, except asynchronous copies for which their thread has not waited.

#include "runtime/ptx/races/race_finder.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "runtime/ptx/execution/thread_memory.h"

namespace hpe::ptx {

namespace {

constexpr std::uint32_t word_bytes = 4;

bool is_write(memory_use how) { return how == memory_use::write || how == memory_use::asynchronous_copy; }

template <class Action>
void for_each_thread(const std::vector<std::uint64_t>& bits, const Action& action) {
  for (std::size_t n = 0; n < bits.size(); ++n)
    for (std::uint64_t rest = bits[n]; rest != 0; rest &= rest - 1)
      if (!action(static_cast<std::uint32_t>(64 * n + static_cast<unsigned>(std::countr_zero(rest))))) return;
}

void merge(std::vector<std::uint32_t>& into, const std::vector<std::uint32_t>& from) {
  std::transform(into.begin(), into.end(), from.begin(), into.begin(), [](auto a, auto b) { return std::max(a, b); });
}

}  // namespace

race_finder::race_finder(race_report& report, std::uint32_t threads_of_a_block, std::uint32_t blocks)
    : report_(report),
      threads_(threads_of_a_block),
      blocks_(blocks),
      states_(std::size_t{threads_of_a_block} * blocks),
      words_(blocks),
      arrived_(blocks) {}

void race_finder::begin() {
  ++epoch_;
  std::fill(states_.begin(), states_.end(), thread_state{});
  for (auto& block : words_) block.clear();
  for (auto& barriers : arrived_) barriers.fill(nullptr);
  flags_.clear();
}

bool race_finder::is_ordered(const record& r, std::uint32_t earlier, std::uint32_t later) const {
  const times* const known = states_[later].known.get();
  if (r.how != memory_use::asynchronous_copy)
    return earlier == later || (known != nullptr && (*known)[earlier] >= r.when);
  if (earlier == later && states_[later].complete >= r.when) return true;
  return states_[earlier].settled >= r.when || (known != nullptr && (*known)[states_.size() + earlier] >= r.when);
}

std::optional<std::uint32_t> race_finder::find_unordered(const record& r, std::uint32_t later) const {
  std::optional<std::uint32_t> found;
  for_each_thread(r.threads, [&](std::uint32_t t) {
    if (!is_ordered(r, t, later)) found = t;
    return !found;
  });
  return found;
}

void race_finder::forget(word& in) const {
  if (in.epoch == epoch_) return;
  in.epoch = epoch_;
  std::erase_if(in.records, [this](const record& r) {
    if (r.how != memory_use::asynchronous_copy) return true;
    bool is_settled = true;
    for_each_thread(r.threads, [&](std::uint32_t t) { return is_settled = states_[t].settled >= r.when; });
    return is_settled;
  });
}

race::access race_finder::access_of(const block_context& by, std::uint32_t number, const record& r) const {
  const block_context& block = by.cluster == nullptr ? by : *by.cluster->blocks[number / threads_];
  return {r.what, r.how, block.ctaid, block.thread_of(number % threads_)};
}

void race_finder::touch(const block_context& by, std::uint32_t thread, const instruction& what, const std::uint8_t* at,
                        std::uint64_t bytes, memory_use how, const void* value) {
  const auto address = reinterpret_cast<std::uint64_t>(at);
  const bool is_atomic = how == memory_use::atomic;
  const bool only_stores = is_atomic && what.kind == kind::store, only_loads = is_atomic && what.kind == kind::load;
  if (is_atomic && !only_stores) acquire(by, thread, address);
  if (const block_context* const owner = owner_of_shared(by, address); owner != nullptr) {
    const std::uint32_t me = number(by, thread);
    std::vector<word>& words = words_[owner->cluster_rank];
    if (words.empty()) words.resize((owner->dynamic_shared_offset + owner->dynamic_shared_size + 3) / word_bytes);
    const auto begin = static_cast<std::uint32_t>(at - owner->shared);
    const auto end = static_cast<std::uint32_t>(begin + bytes);
    record access{&what, states_[me].now, how, 0, std::vector<std::uint64_t>((states_.size() + 63) / 64)};
    if (how == memory_use::asynchronous_copy) access.when = states_[me].committed + 1;
    access.threads[me / 64] |= std::uint64_t{1} << (me % 64);
    race where;
    where.owner = owner->ctaid;
    where.later = access_of(by, me, access);
    for (std::uint32_t from = begin; from < end;) {
      const std::uint32_t to = std::min(end, (from / word_bytes + 1) * word_bytes);
      access.bytes = static_cast<std::uint8_t>(((1U << (to - from)) - 1) << (from % word_bytes));
      where.offset = from;
      const bool changes =
          value == nullptr ||
          std::memcmp(owner->shared + from, static_cast<const std::uint8_t*>(value) + (from - begin), to - from) != 0;
      touch_word(words[from / word_bytes], access, by, me, changes, where);
      from = to;
    }
  }
  if (is_atomic && !only_loads) release(by, thread, address);
}

void race_finder::touch_word(word& in, const record& access, const block_context& block, std::uint32_t by, bool changes,
                             race& where) {
  forget(in);
  for (const record& r : in.records) {
    if ((r.bytes & access.bytes) == 0 || (r.how == memory_use::read && access.how == memory_use::read)) continue;
    if (r.how == memory_use::atomic && access.how == memory_use::atomic) continue;
    if (is_write(r.how) && is_write(access.how) && !changes) continue;
    const auto earlier = find_unordered(r, by);
    if (!earlier) continue;
    where.earlier = access_of(block, *earlier, r);
    report_.add(where);
  }
  // If a record is ordered before this write, any later access that races with the record also races with this write.
  // Therefore the finder drops the record.
  const std::uint64_t mine = std::uint64_t{1} << (by % 64);
  bool is_there = false;
  for (record& r : in.records) {
    if ((r.bytes & ~access.bytes) != 0) continue;
    if (is_write(access.how)) {
      for_each_thread(std::vector(r.threads), [&](std::uint32_t t) {
        if (is_ordered(r, t, by)) r.threads[t / 64] &= ~(std::uint64_t{1} << (t % 64));
        return true;
      });
    } else if (r.how == access.how) {
      r.threads[by / 64] &= ~mine;
    }
    if (r.what == access.what && r.when == access.when && r.how == access.how && r.bytes == access.bytes) {
      r.threads[by / 64] |= mine;
      is_there = true;
    }
  }
  std::erase_if(in.records, [](const record& r) {
    return std::all_of(r.threads.begin(), r.threads.end(), [](std::uint64_t bits) { return bits == 0; });
  });
  if (!is_there) in.records.push_back(access);
}

std::shared_ptr<race_finder::times> race_finder::known_to(std::span<const std::uint32_t> threads,
                                                          const std::shared_ptr<const times>& more) const {
  auto sum = std::make_shared<times>(2 * states_.size());
  if (more != nullptr) merge(*sum, *more);
  std::vector<const times*> merged;  // threads that met share one `known`, which the loop merges only once
  for (const std::uint32_t t : threads) {
    const times* const known = states_[t].known.get();
    if (known == nullptr || std::find(merged.begin(), merged.end(), known) != merged.end()) continue;
    merge(*sum, *known);
    merged.push_back(known);
  }
  for (const std::uint32_t t : threads) {
    clock& complete = (*sum)[states_.size() + t];
    (*sum)[t] = states_[t].now;
    complete = std::max(complete, states_[t].complete);
  }
  return sum;
}

void race_finder::meet(const block_context& block, std::span<const std::uint32_t> threads, std::uint32_t barrier) {
  std::vector<std::uint32_t> group;
  for (const std::uint32_t t : threads) group.push_back(number(block, t));
  std::shared_ptr<const times> arrived;
  if (barrier != no_barrier) arrived = std::move(arrived_[block.cluster_rank][barrier]);
  const std::shared_ptr<const times> sum = known_to(group, arrived);
  for (const std::uint32_t t : group) {
    states_[t].known = sum;
    ++states_[t].now;
  }
}

void race_finder::meet_lanes(const block_context& block, std::uint32_t first, std::uint32_t lanes) {
  std::vector<std::uint32_t> threads;
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1)
    threads.push_back(first + static_cast<std::uint32_t>(std::countr_zero(rest)));
  meet(block, threads);
}

void race_finder::meet_all(const block_context& block) {
  if (blocks_ > 1) {
    std::vector<std::uint32_t> threads(threads_);
    std::iota(threads.begin(), threads.end(), 0U);
    return meet(block, threads);
  }
  ++epoch_;
  for (thread_state& s : states_) {
    s.settled = s.complete;
    s.known = nullptr;
  }
  arrived_[0].fill(nullptr);
  flags_.clear();
}

void race_finder::note_in(std::shared_ptr<const times>& to, std::uint32_t thread) {
  to = known_to({&thread, 1}, to);
  ++states_[thread].now;
}

void race_finder::arrive(const block_context& block, std::uint32_t thread, std::uint32_t barrier) {
  note_in(arrived_[block.cluster_rank][barrier], number(block, thread));
}

void race_finder::release(const block_context& block, std::uint32_t thread, std::uint64_t flag) {
  note_in(flags_[flag], number(block, thread));
}

void race_finder::acquire(const block_context& block, std::uint32_t thread, std::uint64_t flag) {
  const auto found = flags_.find(flag);
  if (found == flags_.end()) return;
  const std::uint32_t me = number(block, thread);
  states_[me].known = known_to({&me, 1}, found->second);
}

void race_finder::commit_copies(const block_context& block, std::uint32_t thread) {
  ++states_[number(block, thread)].committed;
}

void race_finder::wait_for_copies(const block_context& block, std::uint32_t thread, std::uint32_t pending) {
  thread_state& s = states_[number(block, thread)];
  s.complete = std::max(s.complete, s.committed - std::min(pending, s.committed));
}

}  // namespace hpe::ptx
