// The turns of processes, and the requests that processes send to each other; see device_share.h.
#include <algorithm>

#include "runtime/node/device_share.h"
#include "runtime/node/share_page.h"

namespace hpe::node {

namespace {

using std::chrono::nanoseconds;
constexpr std::uint64_t millisecond = 1'000'000;

// The interval at which a waiting process checks the state of the others, even if no process wakes it: a process that
// ends or is stopped does not wake other processes.
constexpr std::uint64_t between_looks = 5 * millisecond;
constexpr std::uint64_t least_turn = 20 * millisecond;
// The length of a turn, as a multiple of the time that other processes took to give their memory back. The owner also
// copies its own data into that memory, so moving data takes about an eighth of the turn.
constexpr std::uint64_t turn_for_collecting = 16;
constexpr std::uint64_t most_for_collecting = 30'000 * millisecond;
// If another process waits and the owner does not use the device for a quarter of the collecting time, but at least
// least_idling and at most most_idling, the owner's turn ends.
constexpr std::uint64_t part_for_idling = 4;
constexpr std::uint64_t least_idling = 2 * millisecond;
constexpr std::uint64_t most_idling = 1000 * millisecond;
// A process that does not react within this time is treated as stopped.
constexpr std::uint64_t reacts_within = 1000 * millisecond;
// If the owner is still collecting memory this long after its turn should have ended, the owner hangs or waits for
// kernels, so its turn may end.
constexpr std::uint64_t collects_within = 10'000 * millisecond;

std::uint64_t now_in_nanoseconds() noexcept {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

void sleep_on(const os::futex_word& bell, std::uint32_t rung, std::uint64_t until) noexcept {
  os::futex_wait_until(bell, rung, std::chrono::steady_clock::time_point(nanoseconds(until)));
}

}  // namespace

bool device_share::is_waiting(unsigned index, std::uint64_t now) const noexcept {
  const share_slot& its = slot(index);
  return is_member(index) && its.waits_since.load() != 0 && its.waited.load() + reacts_within > now;
}

bool device_share::another_waits(std::uint64_t now) const noexcept {
  for (unsigned i = 0; i < used_slots(); ++i)
    if (i != index_ && is_waiting(i, now)) return true;
  return false;
}

bool device_share::may_end(turn current, std::uint64_t now) const noexcept {
  const unsigned owner = turn_word::owner(current);
  if (owner >= used_slots() || !is_member(owner)) return true;
  const std::uint64_t ends = slot(owner).turn_ends.load();
  if (now >= ends && turn_word::threads(current) == 0) return true;
  return is_stopped(owner) || now >= ends + collects_within;
}

bool device_share::is_next(std::uint64_t now) const noexcept {
  const std::uint64_t since = own().waits_since.load();
  for (unsigned i = 0; i < used_slots(); ++i) {
    if (i == index_ || !is_waiting(i, now)) continue;
    const std::uint64_t its = slot(i).waits_since.load();
    if (its < since || (its == since && i < index_)) return false;
  }
  return true;
}

device_share::turn device_share::enter() noexcept {
  share_slot& mine = own();
  for (bool told = false;;) {
    const std::uint32_t rung = page_->bell.load();
    const std::uint64_t now = now_in_nanoseconds();
    std::uint64_t current = page_->turn.load();
    const unsigned owner = turn_word::owner(current);
    if (owner == index_ && (now < mine.turn_ends.load() || !another_waits(now))) {
      if (!page_->turn.compare_exchange_strong(current, current + turn_word::one_thread)) continue;
      mine.waits_since.store(0);
      return turn_word::number(current);
    }
    if (std::uint64_t none = 0; mine.waits_since.compare_exchange_strong(none, now)) told = false;
    mine.waited.store(now);
    if (owner == index_) {
      // Waiting processes have priority over another turn of this process. This turn ends when no thread of this
      // process collects memory any more.
      if (turn_word::threads(current) == 0 &&
          page_->turn.compare_exchange_strong(current, turn_word::next(current, turn_word::nobody, 0))) {
        wake();
        continue;
      }
    } else if (may_end(current, now) && is_next(now)) {
      began_ = now;
      collecting_ = 0;
      mine.turn_ends.store(now + least_turn);
      mine.question.store(0);
      const std::uint64_t next = turn_word::next(current, index_, 1);
      if (page_->turn.compare_exchange_strong(current, next)) {
        mine.waits_since.store(0);
        wake();
        return turn_word::number(next);
      }
      continue;
    }
    if (!told) {
      told = true;
      wake();  // the owner of the turn then checks whether it still needs the turn
      continue;
    }
    sleep_on(page_->bell, rung, now + between_looks);
    forget_dead();
  }
}

void device_share::leave(turn mine) noexcept {
  own().wanted.store(0);
  std::uint64_t current = page_->turn.load();
  while (turn_word::owner(current) == index_ && turn_word::number(current) == mine &&
         !page_->turn.compare_exchange_weak(current, current - turn_word::one_thread)) {
  }
  if (another_waits(now_in_nanoseconds())) wake();
}

unsigned device_share::next_to_ask() const noexcept {
  unsigned result = turn_word::nobody;
  for (unsigned i = 0; i < used_slots(); ++i) {
    if (i == index_ || !is_member(i) || slot(i).held.load() == 0 || (refused_ >> i & 1) != 0) continue;
    if (result == turn_word::nobody || slot(i).used.load() < slot(result).used.load()) result = i;
  }
  return result;
}

void device_share::ask_all_again() noexcept {
  asked_ = turn_word::nobody;
  refused_ = stopped_ = 0;
}

device_share::reply device_share::ask(turn mine, std::uint64_t bytes, std::uint64_t enough) noexcept {
  share_slot& me = own();
  me.wanted.store(bytes);
  std::uint64_t last = now_in_nanoseconds();
  for (;;) {
    const std::uint32_t rung = page_->bell.load();
    forget_dead();
    const std::uint64_t current = page_->turn.load();
    if (turn_word::owner(current) != index_ || turn_word::number(current) != mine) return reply::lost;
    const std::uint64_t now = now_in_nanoseconds();
    collecting_ += now - last;
    last = now;
    me.turn_ends.store(began_ + least_turn + collecting_ +
                       std::min(turn_for_collecting * collecting_, most_for_collecting));
    const std::uint64_t there = free();
    if (there >= enough) return reply::memory;
    if (asked_ == turn_word::nobody) {
      asked_ = next_to_ask();
      if (asked_ == turn_word::nobody) return stopped_ != 0 ? reply::stopped : reply::nothing;
      asked_at_ = now;
      me.asked.store(asked_);
      me.asked_bytes.store(bytes - std::min(bytes, there));
      me.question.store(now);
      wake();
    }
    const share_slot& other = slot(asked_);
    const std::uint64_t bit = std::uint64_t{1} << asked_;
    if (!is_member(asked_)) {
      asked_ = turn_word::nobody;
    } else if (other.answered.load() == asked_at_) {
      if (other.gave.load() < me.asked_bytes.load()) refused_ |= bit;
      asked_ = turn_word::nobody;
    } else if (is_stopped(asked_) || (other.heard.load() != asked_at_ && now > asked_at_ + reacts_within)) {
      refused_ |= bit;
      stopped_ |= bit;
      asked_ = turn_word::nobody;
    } else {
      sleep_on(page_->bell, rung, now + between_looks);
    }
  }
}

void device_share::look_whether_idle(turn current, const service& by) noexcept {
  const std::uint64_t now = now_in_nanoseconds();
  if (by.busy()) busy_at_ = now;
  const std::uint64_t idling = std::clamp(collecting_ / part_for_idling, least_idling, most_idling);
  if (now < std::max(own().used.load(), busy_at_) + idling) return;
  if (page_->turn.compare_exchange_strong(current, turn_word::next(current, turn_word::nobody, 0))) wake();
}

void device_share::serve(const service& by, const std::atomic<bool>& end) {
  share_slot& mine = own();
  while (!end) {
    const std::uint32_t rung = page_->bell.load();
    const std::uint64_t current = page_->turn.load();
    const unsigned owner = turn_word::owner(current);
    if (owner < used_slots() && owner != index_) {
      const share_slot& other = slot(owner);
      const std::uint64_t question = other.question.load();
      if (question != 0 && question != mine.answered.load() && other.asked.load() == index_) {
        mine.heard.store(question);
        mine.gave.store(by.give(other.asked_bytes.load()));
        mine.answered.store(question);
        wake();
        continue;
      }
    }
    const std::uint64_t now = now_in_nanoseconds();
    if (owner == index_ && turn_word::threads(current) == 0 && another_waits(now)) {
      look_whether_idle(current, by);
      sleep_on(page_->bell, page_->bell.load(), now + least_idling);
    } else {
      os::futex_wait(page_->bell, rung);
    }
  }
}

}  // namespace hpe::node
