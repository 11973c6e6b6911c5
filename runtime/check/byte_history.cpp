// A state lists the accesses of bytes that no later access replaces. An access replaces an earlier one if it is ordered
// after it, and whatever conflicts with the earlier access also conflicts with it (covers()). So a write replaces all,
// but an atomic access does not replace a read, because later atomic accesses conflict with the read only. A reported
// access is replaced too, so that one defect is not reported for all later work.

#include "runtime/check/byte_history.h"

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace hpe::check {

namespace {

bool writes(use how) { return how == use::write || how == use::atomic; }

constexpr std::size_t few_states = 1024;

// Whether all uses that conflict with `earlier` conflict with `later` too.
bool covers(use later, use earlier) {
  return later == earlier || later == use::write || (earlier == use::strong_read && later != use::strong_read);
}

}  // namespace

bool conflicts_with(use a, use b) noexcept {
  if (a == use::write || b == use::write) return true;
  return (a == use::atomic && b == use::read) || (a == use::read && b == use::atomic);
}

byte_history::byte_history(std::uintptr_t base, std::size_t bytes, bool is_written, actor_ptr allocated)
    : base_(base),
      bytes_(bytes),
      page_bytes_(std::max(smallest_page, std::bit_ceil(bytes / most_pages + 1))),
      most_states_(few_states),
      pages_((bytes + page_bytes_ - 1) / page_bytes_) {
  state first{is_written, {}};
  if (allocated != nullptr) first.accesses.push_back({std::move(allocated), use::write});
  states_.push_back(std::make_unique<const state>(std::move(first)));
}

const byte_history::state* byte_history::keep(state made) {
  states_.push_back(std::make_unique<const state>(std::move(made)));
  return states_.back().get();
}

void byte_history::forget_unused() {
  std::unordered_set<const state*> used{states_[0].get()};
  const state* last = nullptr;
  for (const page& p : pages_)
    for (const run& r : p)
      if (std::exchange(last, r.what) != r.what) used.insert(r.what);
  std::erase_if(states_, [&](const auto& s) { return !used.contains(s.get()); });
  most_states_ = std::max(few_states, 2 * states_.size());
}

/// Bytes with the same history that the same actor accesses have the same history afterwards, so each transition is
/// computed once.
class byte_history::changes {
 public:
  changes(byte_history& of, use how, bool expects_written, const order_function& is_ordered,
          const conflict_function& found)
      : of_(of), how_(how), expects_written_(expects_written), is_ordered_(is_ordered), found_(found) {}

  const state* operator()(const state* from, const touched& what, std::uintptr_t begin, std::uintptr_t end) {
    const actor_ptr& by = *what.by;
    if (last_ == nullptr || last_->from != from || last_->by != by.get()) last_ = &transition_of(from, by);
    if (last_->is_first_read) found_(begin, end, by, nullptr, use::write);
    for (const access* const each : last_->conflicts) found_(begin, end, by, each->by.get(), each->how);
    return last_->after;
  }

 private:
  struct transition {
    const state* from = nullptr;
    const actor* by = nullptr;
    const state* after = nullptr;
    std::vector<const access*> conflicts{};  // of `from`
    bool is_first_read = false;
  };
  struct hash {
    std::size_t operator()(const std::pair<const state*, const actor*>& key) const {
      return std::hash<const state*>()(key.first) * 31 + std::hash<const actor*>()(key.second);
    }
  };

  const transition& transition_of(const state* from, const actor_ptr& by) {
    transition& made = known_[{from, by.get()}];
    if (made.after == nullptr) made = compute(from, by);
    return made;
  }

  transition compute(const state* from, const actor_ptr& by) {
    transition made{from, by.get()};
    made.is_first_read = expects_written_ && how_ == use::read && !from->is_written;
    // Bytes whose first read was reported count as written, so that they are reported once.
    state next{from->is_written || writes(how_) || made.is_first_read, {}};
    for (const access& each : from->accesses) {
      const bool ordered = is_ordered_(*each.by, *by);
      const bool conflict = conflicts_with(how_, each.how);
      if (conflict && !ordered) made.conflicts.push_back(&each);
      const bool is_replaced = ordered ? covers(how_, each.how) : conflict && writes(how_);
      if (!is_replaced) next.accesses.push_back(each);
    }
    const access mine{by, how_};
    if (std::find(next.accesses.begin(), next.accesses.end(), mine) == next.accesses.end())
      next.accesses.push_back(mine);
    const bool is_same = next.accesses == from->accesses && next.is_written == from->is_written;
    made.after = is_same ? from : of_.keep(std::move(next));
    return made;
  }

  byte_history& of_;
  use how_;
  bool expects_written_;
  const order_function& is_ordered_;
  const conflict_function& found_;
  std::unordered_map<std::pair<const state*, const actor*>, transition, hash> known_;
  const transition* last_ = nullptr;
};

// `what` are all elements that touch the page.
template <class Next>
void byte_history::replace(page& in, std::uintptr_t page_begin, std::span<const touched> what, Next& next) {
  if (in.empty()) in.push_back({0, states_[0].get()});
  const std::uintptr_t stop = std::min(page_begin + page_bytes_, end());
  if (in.size() == 1 && what[0].begin <= page_begin && what[0].end >= stop) {
    in[0].what = next(in[0].what, what[0], page_begin, stop);
    return;
  }
  page& made = made_;
  made.clear();
  const auto put = [&](std::size_t begin, const state* state) {
    if (made.empty() || made.back().what != state) made.push_back({static_cast<std::uint32_t>(begin), state});
  };
  std::size_t at = 0, n = 0;  // the position in the page, and the run that contains it
  const auto end_of_run = [&] { return n + 1 < in.size() ? in[n + 1].begin : page_bytes_; };
  const auto go_to = [&](std::size_t end, const auto& state_of) {
    while (at < end) {
      const std::size_t until = std::min<std::size_t>(end, end_of_run());
      put(at, state_of(in[n].what, at, until));
      at = until;
      if (at == end_of_run() && n + 1 < in.size()) ++n;
    }
  };
  const auto same = [](const state* s, std::size_t, std::size_t) { return s; };
  for (const touched& each : what) {
    go_to(std::max(each.begin, page_begin) - page_begin, same);
    go_to(std::min(each.end, stop) - page_begin, [&](const state* s, std::size_t from, std::size_t to) {
      return next(s, each, page_begin + from, page_begin + to);
    });
  }
  go_to(page_bytes_, same);
  in.assign(made.begin(), made.end());
}

template <class Next>
void byte_history::replace_all(std::span<const touched> what, Next& next) {
  std::uintptr_t at = base_;  // the bytes before it are done
  for (std::size_t n = 0; n < what.size() && at < end();) {
    at = std::max(at, what[n].begin);
    if (at >= std::min(what[n].end, end())) {
      ++n;
      continue;
    }
    const std::size_t number = (at - base_) / page_bytes_;
    const std::uintptr_t page_begin = base_ + number * page_bytes_, page_end = page_begin + page_bytes_;
    std::size_t last = n + 1;
    while (last < what.size() && what[last].begin < page_end) ++last;
    replace(pages_[number], page_begin, what.subspan(n, last - n), next);
    at = page_end;
    n = last - 1;
  }
}

bool byte_history::is_fresh(std::uintptr_t begin, std::uintptr_t end) const {
  const std::uintptr_t first = std::max(begin, base_), stop = std::min(end, this->end());
  for (std::uintptr_t at = first; at < stop;) {
    const std::size_t number = (at - base_) / page_bytes_;
    const std::uintptr_t page_begin = base_ + number * page_bytes_, until = std::min(stop, page_begin + page_bytes_);
    const page& in = pages_[number];
    if (in.empty() && states_[0]->is_written) return false;
    for (std::size_t n = 0; n < in.size(); ++n) {
      const std::uintptr_t run_begin = page_begin + in[n].begin;
      const std::uintptr_t run_end = page_begin + (n + 1 < in.size() ? in[n + 1].begin : page_bytes_);
      if (run_begin < until && run_end > at && in[n].what->is_written) return false;
    }
    at = until;
  }
  return true;
}

void byte_history::add(std::span<const touched> what, use how, bool expects_written, const order_function& is_ordered,
                       const conflict_function& found) {
  if (states_.size() > most_states_) forget_unused();
  changes next(*this, how, expects_written, is_ordered, found);
  replace_all(what, next);
}

void byte_history::set_written(std::uintptr_t begin, std::uintptr_t end) {
  if (states_.size() > most_states_) forget_unused();
  const touched all{begin, end, nullptr};
  std::pair<const state*, const state*> last{};
  const auto next = [&](const state* s, const touched&, std::uintptr_t, std::uintptr_t) {
    if (last.first != s) last = {s, s->is_written ? s : keep(state{true, s->accesses})};
    return last.second;
  };
  replace_all({&all, 1}, next);
}

void byte_history::visit(const std::function<void(const touched& what, use how)>& visitor) const {
  const std::vector<run> untouched{{0, states_[0].get()}};
  for (std::size_t number = 0; number < pages_.size(); ++number) {
    const std::uintptr_t page_begin = base_ + number * page_bytes_,
                         page_end = std::min(page_begin + page_bytes_, end());
    const page& in = pages_[number].empty() ? untouched : pages_[number];
    for (std::size_t n = 0; n < in.size(); ++n)
      for (const access& each : in[n].what->accesses)
        visitor({page_begin + in[n].begin, n + 1 < in.size() ? page_begin + in[n + 1].begin : page_end, &each.by},
                each.how);
  }
}

}  // namespace hpe::check
