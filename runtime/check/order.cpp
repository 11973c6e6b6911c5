// Invariant: past::further of work contains, when it is queued, no moment that the CPU threads' clock of version
// past::host contains, except the work itself.

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

past_ptr work_order::queue(std::uint32_t line, std::span<const past_ptr> after, bool after_all, bool waits_for_values) {
  line_state& in = lines_[line];
  auto made = std::make_shared<past>();
  made->host = host_;
  made->self = {line, ++in.queued};
  made->after_all = after_all;
  const auto take_all = [&](const std::vector<moment>& from) {
    for (const moment& each : from)
      if (!has_waited(each)) add(made->further, each);
  };
  const auto take = [&](const past_ptr& from) {
    if (from == nullptr) return;
    made->after_all = made->after_all || from->after_all;
    take_all(from->further);
    for (const auto& each : from->waits) {
      if (each->is == value_wait::state::known) take_all(each->further);
      if (each->is == value_wait::state::unknown) made->after_all = true;
      const bool is_new = std::find(made->waits.begin(), made->waits.end(), each) == made->waits.end();
      if (each->is == value_wait::state::pending && is_new) made->waits.push_back(each);
    }
  };
  take(in.last);
  for (const past_ptr& each : after) take(each);
  if (waits_for_values) made->waits.push_back(made->own_wait = std::make_shared<value_wait>());
  if (made->after_all) made->waits.clear();
  add(made->further, made->self);
  in.last = made;
  return made;
}

void work_order::end_value_wait(const past& waiting, std::span<const past_ptr> writers) {
  if (waiting.own_wait == nullptr) return;
  value_wait& wait = *waiting.own_wait;
  wait.is = writers.empty() ? value_wait::state::unknown : value_wait::state::known;
  wait.host = host_;
  for (const past_ptr& writer : writers) {
    if (writer->after_all) wait.is = value_wait::state::unknown;
    for (const moment& each : writer->further) add(wait.further, each);
    for (const auto& its : writer->waits) {  // ended before the writer began
      if (its->is != value_wait::state::known) wait.is = value_wait::state::unknown;
      for (const moment& each : its->further) add(wait.further, each);
    }
  }
}

past_ptr work_order::part_now(const past& of) const {
  auto made = std::make_shared<past>(of);
  made->host = host_;
  return made;
}

void work_order::wait(const past_ptr& ended) {
  if (ended == nullptr) return;
  bool is_new = false;
  const auto wait_for = [&](const std::vector<moment>& all) {
    for (const moment& each : all) {
      if (has_waited(each)) continue;
      if (!is_new) ++host_;
      is_new = true;
      lines_[each.line].waited = each.number;
      lines_[each.line].steps.push_back({each.number, host_});
    }
  };
  wait_for(ended->further);
  for (const auto& each : ended->waits) wait_for(each->further);
}

void work_order::wait_for_begin(const past& begun) {
  auto before = std::make_shared<past>(begun);
  for (moment& each : before->further)
    if (each == begun.self) --each.number;  // the earlier work of the line
  wait(before);
}

bool work_order::is_ordered(moment earlier, const past& later) const {
  if (earlier.line == later.self.line) return earlier.number < later.self.number;
  if (later.after_all || contains(later.further, later.host, earlier)) return true;
  return std::any_of(later.waits.begin(), later.waits.end(), [&](const auto& each) {
    return each->is != value_wait::state::known || contains(each->further, each->host, earlier);
  });
}

bool work_order::contains(std::span<const moment> further, std::uint64_t host, moment work) const {
  const auto place = std::lower_bound(further.begin(), further.end(), work.line,
                                      [](const moment& m, std::uint32_t line) { return m.line < line; });
  if (place != further.end() && place->line == work.line && place->number >= work.number) return true;
  const std::vector<step_of_host>& steps = lines_[work.line].steps;
  const auto step = std::lower_bound(steps.begin(), steps.end(), work.number,
                                     [](const step_of_host& s, std::uint64_t number) { return s.number < number; });
  return step != steps.end() && step->version <= host;
}

}  // namespace hpe::check
