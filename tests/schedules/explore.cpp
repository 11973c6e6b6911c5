#include "tests/schedules/explore.h"

#include <stdexcept>

// Searches depth first: a run follows the recorded choices, then takes and records the first option of each new choice.
// The next run takes the next option of the last choice that has further options.

namespace schedules {

namespace {

constexpr std::size_t stack_size = std::size_t{64} << 10;
constexpr std::size_t most_steps = 10000;

}  // namespace

explorer* explorer::current = nullptr;

std::size_t explorer::explore(unsigned preemptions, const std::function<threads()>& make,
                              const std::function<void()>& after) {
  explorer it;
  current = &it;
  std::size_t orders = 0;
  do {
    it.depth_ = 0;
    it.steps_ = 0;
    it.preemptions_left_ = preemptions;
    it.run_once(make());
    after();
    ++orders;
    while (!it.choices_.empty() && it.choices_.back().taken + 1 == it.choices_.back().options) it.choices_.pop_back();
    if (!it.choices_.empty()) ++it.choices_.back().taken;
  } while (!it.choices_.empty());
  current = nullptr;
  return orders;
}

void explorer::enter() {
  fiber& mine = current->fibers_[current->running_];
  try {
    mine.run();
  } catch (...) {
    current->failure_ = std::current_exception();
  }
  mine.done = true;
  current->switch_away(true);
}

void explorer::run_once(threads bodies) {
  fibers_.clear();
  fibers_.resize(bodies.size());
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    fiber& f = fibers_[i];
    f.run = std::move(bodies[i]);
    f.stack = std::make_unique_for_overwrite<char[]>(stack_size);
    ::getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack.get();
    f.context.uc_stack.ss_size = stack_size;
    ::makecontext(&f.context, enter, 0);
  }
  running_ = choose(static_cast<unsigned>(fibers_.size()));
  inside_ = true;
  ::swapcontext(&main_, &fibers_[running_].context);
  inside_ = false;
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

unsigned explorer::choose(unsigned options) {
  if (options <= 1) return 0;
  if (depth_ == choices_.size()) choices_.push_back({0, options});
  return choices_[depth_++].taken;
}

void explorer::switch_away(bool voluntarily) {
  fiber& mine = fibers_[running_];
  if (failure_) ::setcontext(&main_);
  if (++steps_ > most_steps) {
    failure_ = std::make_exception_ptr(std::runtime_error("the threads do not end"));
    ::setcontext(&main_);
  }
  if (!voluntarily && preemptions_left_ == 0) return;
  std::vector<unsigned> others;
  bool all_done = true;
  for (const bool yielded : {false, true}) {
    for (unsigned i = 0; i < fibers_.size() && (others.empty() || !yielded); ++i) {
      const fiber& f = fibers_[i];
      all_done = all_done && f.done;
      if (i != running_ && !f.done && f.blocked_at == nullptr && f.yielded == yielded) others.push_back(i);
    }
  }
  if (all_done) ::setcontext(&main_);
  const bool can_stay = !mine.done && mine.blocked_at == nullptr;
  if (others.empty() && !can_stay) {
    failure_ = std::make_exception_ptr(std::runtime_error("all threads wait for each other"));
    ::setcontext(&main_);
  }
  if (others.empty()) return;
  const unsigned stays = voluntarily ? 0 : 1;
  const unsigned chosen = choose(static_cast<unsigned>(others.size()) + stays);
  if (chosen < stays) return;
  if (!voluntarily) --preemptions_left_;
  for (fiber& f : fibers_)
    if (&f != &mine) f.yielded = false;  // the event for which thread f waits may have happened
  running_ = others[chosen - stays];
  ::swapcontext(&mine.context, &fibers_[running_].context);
}

void explorer::step() {
  if (current != nullptr && current->inside_) current->switch_away(false);
}

void explorer::yield() {
  current->fibers_[current->running_].yielded = true;
  current->switch_away(true);
}

void explorer::block(const void* address) {
  current->fibers_[current->running_].blocked_at = address;
  current->switch_away(true);
}

void explorer::wake_all(const void* address) {
  for (fiber& f : current->fibers_)
    if (f.blocked_at == address) f.blocked_at = nullptr;
}

}  // namespace schedules
