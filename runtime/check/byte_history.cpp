// A state lists the accesses of bytes that no later access replaces. A write that is ordered after an access replaces
// it: whatever conflicts with the access also conflicts with the write. An atomic access replaces only atomic accesses,
// because later atomic accesses conflict with the others, but not with it. A reported access is replaced too, so that
// one defect is not reported for all later work.

#include "runtime/check/byte_history.h"

#include <algorithm>
#include <utility>

namespace hpe::check {

byte_history::byte_history(std::uintptr_t base, std::size_t bytes, bool is_written)
    : base_(base),
      bytes_(bytes),
      first_(std::make_shared<state>(state{is_written, {}})),
      pages_((bytes + page_bytes - 1) / page_bytes) {}

struct byte_history::change {
  use how;
  bool expects_written;
  const order_function& is_ordered;
  const conflict_function& found;
  // The last transition, because neighbouring bytes usually have the same history.
  state_ptr before{};
  actor_ptr by{};
  state_ptr after{};
  std::vector<const access*> conflicts{};
  bool is_first_read = false;

  void compute(const state_ptr& from, const actor_ptr& who) {
    if (before == from && by == who) return;
    before = from;
    by = who;
    conflicts.clear();
    is_first_read = expects_written && how == use::read && !from->is_written;
    state next{from->is_written || how != use::read, {}};
    for (const access& each : from->accesses) {
      const bool ordered = is_ordered(*each.by, *who);
      if (how == use::read) {
        if (each.how != use::read) {
          if (!ordered) conflicts.push_back(&each);
          next.accesses.push_back(each);
        } else if (!ordered) {
          next.accesses.push_back(each);
        }
      } else if (how == use::atomic && each.how == use::atomic) {
        if (!ordered) next.accesses.push_back(each);
      } else if (!ordered) {
        conflicts.push_back(&each);
      } else if (how == use::atomic) {
        next.accesses.push_back(each);
      }
    }
    // Bytes whose first read was reported count as written, so that they are reported once.
    if (is_first_read) next.is_written = true;
    const access mine{who, how};
    if (std::find(next.accesses.begin(), next.accesses.end(), mine) == next.accesses.end())
      next.accesses.push_back(mine);
    after = next.accesses == from->accesses && next.is_written == from->is_written
                ? from
                : std::make_shared<state>(std::move(next));
  }

  const state_ptr& operator()(const state_ptr& from, const touched& what, std::uintptr_t begin, std::uintptr_t end) {
    compute(from, what.by);
    if (is_first_read) found(begin, end, what.by, nullptr, use::write);
    for (const access* const each : conflicts) found(begin, end, what.by, each->by.get(), each->how);
    return after;
  }
};

template <class Next>
void byte_history::replace(page& in, std::uintptr_t page_begin, std::span<const touched> what, const Next& next) {
  page made;
  made.reserve(in.size() + 2);
  const auto put = [&](std::size_t begin, const state_ptr& state) {
    if (made.empty() || made.back().what != state) made.push_back({static_cast<std::uint32_t>(begin), state});
  };
  if (in.empty()) in.push_back({0, first_});
  std::size_t at = 0, n = 0;  // the position in the page, and the run that contains it
  const auto end_of_run = [&] { return n + 1 < in.size() ? in[n + 1].begin : page_bytes; };
  const auto go_to = [&](std::size_t end, const auto& state_of) {
    while (at < end) {
      const std::size_t until = std::min<std::size_t>(end, end_of_run());
      put(at, state_of(in[n].what, at, until));
      at = until;
      if (at == end_of_run() && n + 1 < in.size()) ++n;
    }
  };
  for (const touched& each : what) {
    const std::size_t begin = std::max(each.begin, page_begin) - page_begin;
    const std::size_t end = std::min<std::size_t>(each.end - page_begin, page_bytes);
    go_to(begin, [](const state_ptr& s, std::size_t, std::size_t) -> const state_ptr& { return s; });
    go_to(end, [&](const state_ptr& s, std::size_t from, std::size_t to) -> const state_ptr& {
      return next(s, each, page_begin + from, page_begin + to);
    });
  }
  go_to(page_bytes, [](const state_ptr& s, std::size_t, std::size_t) -> const state_ptr& { return s; });
  in = std::move(made);
}

bool byte_history::is_fresh(std::uintptr_t begin, std::uintptr_t end) const {
  const std::uintptr_t first = std::max(begin, base_), stop = std::min(end, this->end());
  for (std::uintptr_t at = first; at < stop;) {
    const std::size_t number = (at - base_) / page_bytes;
    const std::uintptr_t page_begin = base_ + number * page_bytes, until = std::min(stop, page_begin + page_bytes);
    const page& in = pages_[number];
    if (in.empty() && first_->is_written) return false;
    for (std::size_t n = 0; n < in.size(); ++n) {
      const std::uintptr_t run_begin = page_begin + in[n].begin;
      const std::uintptr_t run_end = page_begin + (n + 1 < in.size() ? in[n + 1].begin : page_bytes);
      if (run_begin < until && run_end > at && in[n].what->is_written) return false;
    }
    at = until;
  }
  return true;
}

void byte_history::add(std::span<const touched> what, use how, bool expects_written, const order_function& is_ordered,
                       const conflict_function& found) {
  change next{how, expects_written, is_ordered, found};
  std::vector<touched> in_page;
  std::size_t page_number = 0;
  const auto flush = [&] {
    if (in_page.empty()) return;
    replace(pages_[page_number], base_ + page_number * page_bytes, in_page,
            [&](const state_ptr& s, const touched& t, std::uintptr_t b, std::uintptr_t e) -> const state_ptr& {
              return next(s, t, b, e);
            });
    in_page.clear();
  };
  for (const touched& each : what) {
    std::uintptr_t at = std::max(each.begin, base_);
    const std::uintptr_t stop = std::min(each.end, end());
    while (at < stop) {
      const std::size_t number = (at - base_) / page_bytes;
      if (number != page_number) flush();
      page_number = number;
      const std::uintptr_t until = std::min(stop, base_ + (number + 1) * page_bytes);
      in_page.push_back({at, until, each.by});
      at = until;
    }
  }
  flush();
}

void byte_history::set_written(std::uintptr_t begin, std::uintptr_t end) {
  const touched all{begin, end, nullptr};
  const std::uintptr_t first = std::max(begin, base_), stop = std::min(end, this->end());
  std::pair<state_ptr, state_ptr> last{};
  for (std::uintptr_t at = first; at < stop;) {
    const std::size_t number = (at - base_) / page_bytes;
    const std::uintptr_t until = std::min(stop, base_ + (number + 1) * page_bytes);
    const touched part{at, until, nullptr};
    replace(pages_[number], base_ + number * page_bytes, {&part, 1},
            [&](const state_ptr& s, const touched&, std::uintptr_t, std::uintptr_t) -> const state_ptr& {
              if (last.first != s) last = {s, s->is_written ? s : std::make_shared<state>(state{true, s->accesses})};
              return last.second;
            });
    at = until;
  }
}

}  // namespace hpe::check
