#include "interpose/mpi/messages/unmatched_sends.h"

#include <algorithm>
#include <functional>
#include <optional>

namespace hpe::interpose::mpi {

unmatched_sends& unmatched_sends::of_process() {
  static auto* const it = new unmatched_sends;
  return *it;
}

void unmatched_sends::add(std::uint64_t number, const send_address& to) {
  expect_envelopes();
  const lock_guard lock(mutex_);
  messages_.push_back({number, to, noted_, passing_to_mpi.load() == 0, false});
}

void unmatched_sends::remove(std::uint64_t number) {
  std::erase_if(messages_, [number](const message& m) { return m.number == number; });
}

void unmatched_sends::matched(std::uint64_t number) {
  const auto found = std::ranges::find(messages_, number, &message::number);
  if (found == messages_.end()) return;
  settle(*found);
  messages_.erase(found);
}

void unmatched_sends::placed(std::uint64_t number) {
  const auto found = std::ranges::find(messages_, number, &message::number);
  if (found != messages_.end()) found->placed = true;
}

bool unmatched_sends::is_next(std::uint64_t number) {
  const auto found = std::ranges::find(messages_, number, &message::number);
  if (found == messages_.end()) return false;
  const send_address& to = found->to;
  if (std::any_of(messages_.begin(), found, [&](const message& m) { return !m.placed && m.to == to; })) return false;
  const lock_guard lock(mutex_);
  const address_slot& its = slot_of(to);
  return its.noted != 0 && its.last == to ? its.matched : !its.others && !sent_before.load();
}

unmatched_sends::address_slot& unmatched_sends::slot_of(const send_address& to) {
  const std::size_t hash = std::hash<MPI_Comm>()(to.comm) / 16 + static_cast<std::size_t>(to.destination) * 37 +
                           static_cast<std::size_t>(to.tag);
  return slots_[hash % slots_.size()];
}

void unmatched_sends::note(const send_address& to) noexcept {
  const lock_guard lock(mutex_);
  address_slot& its = slot_of(to);
  if (its.noted != 0 && its.last != to && !its.matched) its.others = true;
  its.last = to;
  its.noted = ++noted_;
  its.matched = false;
}

void unmatched_sends::made(MPI_Request request, MPI_Comm comm, int destination, int tag) {
  if (advertisement_board::current() == nullptr || destination < 0) return;
  any_persistent = true;
  unmatched_sends& all = of_process();
  const lock_guard lock(all.mutex_);
  all.persistent_[request] = {comm, destination, tag};
}

void unmatched_sends::freed(MPI_Request request) {
  if (!any_persistent.load(std::memory_order_relaxed)) return;
  unmatched_sends& all = of_process();
  const lock_guard lock(all.mutex_);
  all.persistent_.erase(request);
}

unmatched_sends::starts::starts(int count, MPI_Request* requests) {
  if (!any_persistent.load(std::memory_order_relaxed) || requests == nullptr) return;
  unmatched_sends& all = of_process();
  for (int i = 0; i < count; ++i) {
    std::optional<send_address> to;
    {
      const lock_guard lock(all.mutex_);
      if (const auto found = all.persistent_.find(requests[i]); found != all.persistent_.end()) to = found->second;
    }
    if (!to) continue;
    of_sends_.emplace_back(requests[i], &requests[i], *to);
  }
}

unmatched_sends::starts::~starts() {
  unmatched_sends& all = of_process();
  for (const start& each : of_sends_) {
    if (*each.now == each.before) continue;
    const lock_guard lock(all.mutex_);
    if (auto its = all.persistent_.extract(each.before); !its.empty()) all.persistent_[*each.now] = its.mapped();
  }
}

// Records that the messages that MPI has sent to the same address before message `its` are matched. Does nothing if
// another thread was in a call that sends when message `its` was added: the thread may have called note() before, but
// have passed its message to MPI only after `its`. That message need not be matched.
void unmatched_sends::settle(const message& its) {
  if (!its.alone) return;
  const lock_guard lock(mutex_);
  address_slot& at = slot_of(its.to);
  if (at.noted > its.noted) return;
  const bool known = at.noted != 0 && at.last == its.to;
  if (!known && !at.others && !sent_before.load()) return;
  if (!known && at.noted != 0 && !at.matched) at.others = true;
  at.last = its.to;
  at.noted = std::max<std::uint64_t>(at.noted, 1);
  at.matched = true;
}

}  // namespace hpe::interpose::mpi
