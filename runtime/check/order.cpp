// Invariant: past::further of work contains no moment that the CPU threads' clock of version past::host contains,
// except the work itself.

#include "runtime/check/order.h"

#include <algorithm>

namespace hpe::check {

namespace {

void add(std::vector<moment>& to, moment what) {
  const auto place = std::lower_bound(to.begin(), to.end(), what.line,
                                      [](const moment& m, std::uint32_t line) { return m.line < line; });
  if (place == to.end() || place->line != what.line)
    to.insert(place, what);
  else
    place->number = std::max(place->number, what.number);
}

}  // namespace

std::uint32_t work_order::add_line() {
  lines_.emplace_back();
  return static_cast<std::uint32_t>(lines_.size() - 1);
}

past_ptr work_order::queue(std::uint32_t line, std::span<const past_ptr> after, bool after_all) {
  line_state& in = lines_[line];
  auto made = std::make_shared<past>();
  made->host = host_;
  made->self = {line, ++in.queued};
  made->after_all = after_all;
  const auto take = [&](const past_ptr& from) {
    if (from == nullptr) return;
    made->after_all = made->after_all || from->after_all;
    for (const moment& each : from->further)
      if (!has_waited(each)) add(made->further, each);
  };
  take(in.last);
  for (const past_ptr& each : after) take(each);
  add(made->further, made->self);
  in.last = made;
  return made;
}

past_ptr work_order::part_now(const past& of) const {
  auto made = std::make_shared<past>(of);
  made->host = host_;
  return made;
}

void work_order::wait(const past_ptr& ended) {
  if (ended == nullptr) return;
  bool is_new = false;
  for (const moment& each : ended->further) {
    if (has_waited(each)) continue;
    if (!is_new) ++host_;
    is_new = true;
    lines_[each.line].waited = each.number;
    lines_[each.line].steps.push_back({each.number, host_});
  }
}

void work_order::wait_for_begin(const past& begun) {
  auto before = std::make_shared<past>(begun);
  for (moment& each : before->further)
    if (each == begun.self) --each.number;  // the earlier work of the line
  wait(before);
}

bool work_order::is_ordered(moment earlier, const past& later) const {
  if (earlier.line == later.self.line) return earlier.number < later.self.number;
  if (later.after_all) return true;
  const auto place = std::lower_bound(later.further.begin(), later.further.end(), earlier.line,
                                      [](const moment& m, std::uint32_t line) { return m.line < line; });
  if (place != later.further.end() && place->line == earlier.line && place->number >= earlier.number) return true;
  const std::vector<step_of_host>& steps = lines_[earlier.line].steps;
  const auto step = std::lower_bound(steps.begin(), steps.end(), earlier.number,
                                     [](const step_of_host& s, std::uint64_t number) { return s.number < number; });
  return step != steps.end() && step->version <= later.host;
}

}  // namespace hpe::check
