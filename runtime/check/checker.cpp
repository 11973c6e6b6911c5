// The accesses of work arrive when the work has run, in an order that the program's own order allows, so an access is
// compared only with accesses that are not ordered after it. A free in stream order arrives like an access.

#include "runtime/check/checker.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "runtime/base/interval_map.h"
#include "runtime/trace/python_lines.h"

namespace hpe::check {

checker::checker(ignored_findings ignored, std::function<bool(std::uint64_t, std::uint64_t)> is_unchanged,
                 std::function<bool(std::uint64_t)> is_other, std::function<std::vector<host_touch>()> take_touches,
                 process_name self)
    : is_unchanged_(std::move(is_unchanged)),
      is_other_(std::move(is_other)),
      take_touches_(std::move(take_touches)),
      shared_(std::move(self)),
      findings_(std::move(ignored)) {}

std::uint32_t checker::add_line(int device) {
  const lock_guard lock(mutex_);
  const std::uint32_t made = order_.add_line();
  lines_[device].push_back(made);
  ended_.push_back(false);
  return made;
}

void checker::end_line(std::uint32_t line) {
  const lock_guard lock(mutex_);
  ended_[line] = true;
}

std::shared_ptr<const checked_work> checker::queue(std::uint32_t line, std::uint64_t stream,
                                                   std::span<const past_ptr> after,
                                                   std::span<const std::uint32_t> after_lines, const queued_kind& kind,
                                                   std::shared_ptr<const call_place> place) {
  const lock_guard lock(mutex_);
  add_touches();
  std::vector<past_ptr> all(after.begin(), after.end());
  for (const std::uint32_t other : after_lines) all.push_back(order_.last(other));
  auto made = std::make_shared<const checked_work>(checked_work{
      order_.queue(line, all, kind.waits_for_unknown, kind.waits_for_values), stream, std::move(place), ++queued_});
  if (kind.uses_memory) last_use_[line] = made;
  return made;
}

void checker::end_value_wait(const checked_work& waiting, std::span<const past_ptr> writers) {
  const lock_guard lock(mutex_);
  add_touches();
  order_.end_value_wait(*waiting.when, writers);
}

past_ptr checker::last(std::uint32_t line) const {
  const lock_guard lock(mutex_);
  return order_.last(line);
}

void checker::wait(const past_ptr& ended) {
  const lock_guard lock(mutex_);
  add_touches();
  order_.wait(ended);
  shared_.waited(order_);
}

void checker::begin_host_function(const operation_run& run) {
  const lock_guard lock(mutex_);
  add_touches();
  order_.wait_for_begin(*run.work->when);
  shared_.waited(order_);
  host_functions_[::gettid()] = run;
}

void checker::end_host_function() {
  const lock_guard lock(mutex_);
  add_touches();
  const auto ended = host_functions_.find(::gettid());
  if (ended == host_functions_.end()) return;
  order_.wait(ended->second.work->when);
  shared_.waited(order_);
  shared_.learned();
  host_functions_.erase(ended);
}

void checker::wait_for_seen() {
  for (const past_ptr& each : seen_) order_.wait(each);
  seen_.clear();
}

void checker::add_touches() {
  if (!take_touches_) return;
  past_ptr now;
  // What follows comes after the touches so far.
  const auto go_on = [&]() HPE_NO_THREAD_SAFETY_ANALYSIS {
    order_.wait(std::exchange(now, nullptr));
    wait_for_seen();
  };
  for (const host_touch& each : take_touches_()) {
    const auto found = find(each.begin);
    if (found == allocations_.end() && ordinary_.empty()) continue;
    const auto in = host_functions_.find(each.thread);
    if (in == host_functions_.end() && now == nullptr) {
      if (!touches_line_) {
        touches_line_ = order_.add_line();
        ended_.push_back(false);
      }
      now = order_.queue(*touches_line_);
    }
    operation_run run = in != host_functions_.end() ? in->second : operation_run{};
    const auto place = std::make_shared<const call_place>(call_place{"", each.stack});
    checked_operation code{.what = "CPU code", .place = place, .is_host = true};
    if (each.is_vague) code.vague = {each.begin, each.end};
    run.what = std::make_shared<const checked_operation>(std::move(code));
    const past_ptr when = run.work != nullptr ? order_.part_now(*run.work->when) : now;
    run.work = std::make_shared<const checked_work>(checked_work{when, 0, place});
    const actor_ptr who = std::make_shared<const actor>(actor{run, 0});
    const touched bytes{each.begin, each.end, &who};
    if (found == allocations_.end()) {
      add_ordinary_touch(bytes, each.writes ? use::write : use::read);
      continue;
    }
    add_to_allocation(found->second, found->first, {&bytes, 1}, each.writes ? use::write : use::read, false, false);
    if (!seen_.empty()) go_on();
  }
  go_on();
}

std::vector<past_ptr> checker::last_of(std::span<const std::uint32_t> lines) const {
  const lock_guard lock(mutex_);
  std::vector<past_ptr> result;
  for (const std::uint32_t line : lines) result.push_back(order_.last(line));
  return result;
}

std::vector<past_ptr> checker::last_of_device(int device) {
  const lock_guard lock(mutex_);
  std::vector<std::uint32_t>& lines = lines_[device];
  std::erase_if(lines, [&](std::uint32_t line) HPE_NO_THREAD_SAFETY_ANALYSIS {
    return ended_[line] && (order_.last(line) == nullptr || order_.has_waited(order_.last(line)->self));
  });
  std::vector<past_ptr> result;
  for (const std::uint32_t line : lines) result.push_back(order_.last(line));
  return result;
}

bool checker::has_waited(const past_ptr& work) const {
  const lock_guard lock(mutex_);
  return order_.has_waited(work->self);
}

bool checker::is_settled(std::uint32_t line) const {
  const lock_guard lock(mutex_);
  const past_ptr last = order_.last(line);
  return ended_[line] && (last == nullptr || order_.has_waited(last->self));
}

void checker::insert(std::uint64_t base, allocation made) {
  for (auto at = freed_.lower_bound(base); at != freed_.end() && at->first < base + made.bytes;) at = freed_.erase(at);
  if (auto at = freed_.lower_bound(base); at != freed_.begin()) {
    --at;
    if (at->first + at->second.bytes > base) freed_.erase(at);
  }
  allocations_.insert_or_assign(base, std::move(made));
}

void checker::allocate(std::uint64_t base, std::size_t bytes, bool is_fresh, bool must_be_freed,
                       std::shared_ptr<const call_place> place) {
  const lock_guard lock(mutex_);
  insert(base, {bytes, std::move(place), byte_history(base, bytes, !is_fresh), must_be_freed});
}

void checker::release(std::uint64_t base, std::shared_ptr<const call_place> place) {
  const lock_guard lock(mutex_);
  const auto found = allocations_.find(base);
  if (found == allocations_.end()) return;
  const auto what = std::make_shared<const checked_operation>(checked_operation{place->call, place});
  const auto work = std::make_shared<const checked_work>(checked_work{nullptr, 0, std::move(place)});
  const auto by = std::make_shared<const actor>(actor{{what, work}, 0});
  shared_.release(base, by, rank_reporter());
  freed_.insert_or_assign(base, freed{found->second.bytes, found->second.place, by});
  allocations_.erase(found);
}

void checker::allocate_in_line(std::uint64_t base, std::size_t bytes, bool is_fresh, const operation_run& by) {
  const lock_guard lock(mutex_);
  const auto who = std::make_shared<const actor>(actor{by, 0});
  insert(base, {bytes, by.what->place, byte_history(base, bytes, !is_fresh, who), true});
}

void checker::release_in_line(std::uint64_t base, const operation_run& by) {
  const lock_guard lock(mutex_);
  const auto found = allocations_.find(base);
  if (found == allocations_.end()) return;
  allocation& gone = found->second;
  const auto who = std::make_shared<const actor>(actor{by, 0});
  const touched all{base, base + gone.bytes, &who};
  add_to_allocation(gone, base, {&all, 1}, use::write, false, false);
  freed_.insert_or_assign(base, freed{gone.bytes, gone.place, who});
  allocations_.erase(found);
}

void checker::share(std::uint64_t base, const std::string& name, bool is_own) {
  const lock_guard lock(mutex_);
  const auto in = allocations_.find(base);
  if (in == allocations_.end()) return;
  shared_.add(name, is_own, base, in->second.bytes);
  in->second.history.visit([&](const touched& what, use how) HPE_NO_THREAD_SAFETY_ANALYSIS {
    shared_.access(base, {&what, 1}, how, order_, rank_reporter());
  });
}

shared_memories::report_function checker::rank_reporter() {
  return [this](const std::string& key, const actor& by, const std::function<finding()>& make)
             HPE_NO_THREAD_SAFETY_ANALYSIS {
               findings_.report(key, by.run.work.get(), [&]() HPE_NO_THREAD_SAFETY_ANALYSIS {
                 finding made = make();
                 const auto in = find(made.address);
                 describe(made, in->second, in->first, made.address, made.address + made.bytes);
                 return made;
               });
             };
}

void checker::set_written(std::uint64_t base) {
  const lock_guard lock(mutex_);
  if (const auto found = find(base); found != allocations_.end())
    found->second.history.set_written(found->first, found->first + found->second.bytes);
}

checker::allocations::iterator checker::find(std::uint64_t address) {
  return find_containing(allocations_, address, &allocation::bytes);
}

bool checker::is_ordered(const actor& earlier, const actor& later) const {
  const operation_run &a = earlier.run, &b = later.run;
  if (a.work->when == nullptr) return true;
  // A host function is a part of its work.
  if (a.work->when->self == b.work->when->self)
    return a.steps == nullptr || a.step == b.step || b.steps->before[b.step][a.step];
  return order_.is_ordered(a.work->when->self, *b.work->when);
}

std::vector<std::uint64_t> checker::find_fresh(std::span<const std::pair<int, std::uint64_t>> pointers) {
  std::vector<std::uint64_t> result;
  const lock_guard lock(mutex_);
  for (const auto& [argument, value] : pointers) {
    const auto found = find(value);
    if (found == allocations_.end()) continue;
    const auto& [base, what] = *found;
    if (what.history.is_fresh(base, base + what.bytes) && is_unchanged_(base, base + std::min(what.bytes, first_bytes)))
      result.push_back(base);
  }
  return result;
}

void checker::add(const operation_run& run, std::span<const access_range> ranges,
                  std::span<const std::uint64_t> fresh) {
  std::array<actor_ptr, 256> actors;
  std::vector<touched> what;
  const lock_guard lock(mutex_);
  // Atomic accesses first: CPU code may have learned by them that other bytes are ready.
  for (const use how : {use::atomic, use::read, use::write}) {
    for (std::size_t n = 0; n < ranges.size();) {
      what.clear();
      std::uint64_t last = 0;  // add_touched needs ranges in ascending order
      for (; n < ranges.size() && (ranges[n].how != how || ranges[n].begin >= last); ++n) {
        if (ranges[n].how != how) continue;
        last = ranges[n].end;
        actor_ptr& by = actors[ranges[n].site % actors.size()];
        if (by == nullptr) by = std::make_shared<const actor>(actor{run, ranges[n].site});
        what.push_back({ranges[n].begin, ranges[n].end, &by});
      }
      add_touched(run, what, how, fresh);
    }
  }
  wait_for_seen();
}

void checker::add_touched(const operation_run& run, std::span<const touched> what, use how,
                          std::span<const std::uint64_t> fresh) {
  std::uint64_t at = 0;  // the bytes before it have been added
  for (std::size_t n = 0; n < what.size();) {
    at = std::max<std::uint64_t>(at, what[n].begin);
    if (at >= what[n].end) {
      ++n;
      continue;
    }
    const auto found = find(at);
    if (found == allocations_.end()) {
      const auto next = allocations_.upper_bound(at);
      const std::uint64_t end = next == allocations_.end() ? what[n].end : std::min(what[n].end, next->first);
      add_unknown(*what[n].by, how, at, end);
      at = end;
      continue;
    }
    const std::uint64_t stop = found->first + found->second.bytes;
    std::size_t last = n + 1;
    while (last < what.size() && what[last].begin < stop) ++last;
    const bool was_fresh = std::find(fresh.begin(), fresh.end(), found->first) != fresh.end();
    add_to_allocation(found->second, found->first, what.subspan(n, last - n), how, run.what->is_kernel, was_fresh);
    at = stop;
    n = last - 1;  // its end may lie behind the allocation
  }
}

void checker::add_to_allocation(allocation& to, std::uint64_t base, std::span<const touched> what, use how,
                                bool is_kernel, bool was_fresh) {
  const auto order = [this](const actor& a, const actor& b) HPE_NO_THREAD_SAFETY_ANALYSIS { return is_ordered(a, b); };
  const std::uint64_t begin = std::max(what.front().begin, base), end = std::min(what.back().end, base + to.bytes);
  if (!is_kernel && how == use::read && to.history.is_fresh(begin, end) && is_unchanged_(begin, end))
    add_unwritten(to, base, begin, end, *what.front().by);
  shared_.access(base, what, how, order_, rank_reporter());
  std::set<std::pair<const actor*, const actor*>> told;
  to.history.add(what, how, is_kernel, order,
                 [&](std::uintptr_t begin, std::uintptr_t end, const actor_ptr& by, const actor* earlier,
                     use earlier_how) HPE_NO_THREAD_SAFETY_ANALYSIS {
                   // A kernel may have written the bytes after it has read them (`p[i] += 1`).
                   const bool is_fresh = was_fresh && begin - base < first_bytes && by->run.what->reads_first(by->site);
                   if (earlier == nullptr && !is_fresh && !is_unchanged_(begin, end)) return;
                   if (!told.emplace(by.get(), earlier).second) return;
                   if (earlier == nullptr)
                     add_unwritten(to, base, begin, end, by);
                   else
                     add_race(to, base, begin, end, by, how, *earlier, earlier_how);
                 });
}

void checker::add_unknown(const actor_ptr& by, use how, std::uint64_t begin, std::uint64_t end) {
  const auto fill = [&](finding& f, const char* kind, std::string sentence) {
    f.kind = kind;
    f.sentence = std::move(sentence);
    f.address = begin;
    f.bytes = end - begin;
    f.now = by->side(how, begin, 1);
  };
  auto after = freed_.upper_bound(begin);
  if (after != freed_.begin()) {
    const auto& last = *std::prev(after);
    const std::uint64_t base = last.first;
    const auto& gone = last.second;
    if (begin - base < gone.bytes && (gone.by->run.work->when != nullptr || !is_other_(begin))) {
      const bool ordered = is_ordered(*gone.by, *by);
      const std::string key = fmt::format("freed {} {} {}", ordered, by->key(), gone.by->key());
      return findings_.report(key, by->run.work.get(), [&] {
        finding f;
        const std::string_view verb = present_of(how);
        fill(f, ordered ? "use-after-free" : "stream-race",
             ordered ? fmt::format("{} {} memory that {} freed", by->run.what->what, verb, gone.by->run.what->what)
                     : fmt::format("{} {} memory that {} freed, and nothing orders them", by->run.what->what, verb,
                                   gone.by->run.what->what));
        f.now = by->side(how, base, gone.bytes);
        f.offset = begin - base;
        f.allocation_bytes = gone.bytes;
        f.allocation = finding_side{.how = "allocate", .what = gone.allocated->call, .place = gone.allocated->text()};
        f.earlier = gone.by->side(use::write, 0, 0);
        f.earlier->how = "free";
        f.missing = ordered ? "the free must come after the last use"
                            : fmt::format("an event of {} for which the free waits, or the free on that stream",
                                          by->stream_text());
        return f;
      });
    }
  }
  if (is_other_(begin)) return;
  findings_.report(
      fmt::format("range {} {}", by->key(), by->site), by->run.work.get(), [&]() HPE_NO_THREAD_SAFETY_ANALYSIS {
        finding f;
        const auto next = allocations_.upper_bound(begin);
        std::string where = "outside of all allocations";
        if (next != allocations_.begin()) {
          const auto before = std::prev(next);
          const std::uint64_t stop = before->first + before->second.bytes;
          constexpr std::uint64_t near = std::uint64_t{1} << 20;
          if (begin - stop < near) {
            where =
                fmt::format("{} bytes behind the end of an allocation of {} bytes", begin - stop, before->second.bytes);
            describe(f, before->second, before->first, begin, end);
          }
        }
        fill(f, "out-of-range",
             fmt::format("{} {} {} bytes {}", by->run.what->what, present_of(how), end - begin, where));
        if (f.allocation) f.now = by->side(how, begin - f.offset, f.allocation_bytes);
        f.missing = "a test of the index, or a larger allocation";
        return f;
      });
}

void checker::add_outside(const operation_run& run, const access_range& bytes, std::uint64_t base) {
  const lock_guard lock(mutex_);
  const auto in = allocations_.find(base);
  if (in == allocations_.end()) return;
  findings_.report(
      fmt::format("range {} {}", actor{run, 0}.key(), bytes.site), run.work.get(), [&]() HPE_NO_THREAD_SAFETY_ANALYSIS {
        finding f;
        f.kind = "out-of-range", f.missing = "a test of the index, or a larger allocation";
        f.sentence = fmt::format("{} {} {} bytes {} bytes {} of an allocation of {} bytes", run.what->what,
                                 present_of(bytes.how), bytes.end - bytes.begin,
                                 bytes.begin < base ? base - bytes.begin : bytes.begin - base - in->second.bytes,
                                 bytes.begin < base ? "before the begin" : "behind the end", in->second.bytes);
        describe(f, in->second, base, bytes.begin, bytes.end);
        f.now = actor{run, bytes.site}.side(bytes.how, base, in->second.bytes);
        return f;
      });
}

void checker::add_race(allocation& in, std::uint64_t base, std::uint64_t begin, std::uint64_t end, const actor_ptr& by,
                       use how, const actor& earlier, use earlier_how) {
  if (by->run.what->is_host) return add_touch(&in, base, begin, end, *by, how, earlier, earlier_how);
  if (earlier.run.what->is_host) return add_touch(&in, base, begin, end, earlier, earlier_how, *by, how);
  // A use that is not ordered with the free is found too.
  if (by->is_free() && earlier.is_allocation()) return;
  if (by->run.what->is_message || earlier.run.what->is_message) {
    const bool as_queued = earlier.run.work->number < by->run.work->number;
    return as_queued ? add_message_race(in, base, begin, end, earlier, earlier_how, *by, how)
                     : add_message_race(in, base, begin, end, *by, how, earlier, earlier_how);
  }
  const bool in_graph = by->run.work == earlier.run.work;
  const std::string key = fmt::format("race {} {}", earlier.key(), by->key());
  findings_.report(key, by->run.work.get(), [&] {
    finding f;
    f.kind = in_graph ? "graph-race" : "stream-race";
    const std::string verb = by->is_free() ? "frees" : std::string(present_of(how));
    const std::string past_verb = earlier.is_allocation() ? "allocated" : std::string(past_of(earlier_how));
    f.sentence = fmt::format("{} {} bytes that {} {}, and nothing orders them", by->run.what->what, verb,
                             earlier.run.what->what, past_verb);
    describe(f, in, base, begin, end);
    f.now = by->side(how, base, in.bytes);
    f.earlier = earlier.side(earlier_how, base, in.bytes);
    if (by->is_free()) f.now->how = "free";
    if (earlier.is_allocation()) f.earlier->how = "allocate";
    f.missing = in_graph ? "an edge of the graph between the two nodes, or a path of edges"
                         : fmt::format("an event of {} for which {} waits, or a wait of the host between the two calls",
                                       earlier.stream_text(), by->stream_text());
    return f;
  });
}

void checker::add(const operation_run& launch, std::span<const launch_race> races) {
  const lock_guard lock(mutex_);
  for (const launch_race& each : races) {
    const auto found = each.is_shared ? allocations_.end() : find(each.begin);
    const bool is_known = found != allocations_.end();
    const std::uint64_t base = is_known ? found->first : 0, bytes = is_known ? found->second.bytes : 0;
    const std::string key = fmt::format("{} {}", each.key(base), actor{launch, 0}.key());
    findings_.report(key, launch.work.get(), [&] {
      finding f = each.describe(*launch.what, base, bytes);
      f.now->stream = f.earlier->stream = launch.work->stream;
      if (is_known) describe(f, found->second, base, each.begin, each.end);
      return f;
    });
  }
}

void checker::add_message_race(allocation& in, std::uint64_t base, std::uint64_t begin, std::uint64_t end,
                               const actor& earlier, use earlier_how, const actor& later, use later_how) {
  findings_.report(fmt::format("message {} {}", earlier.key(), later.key()), later.run.work.get(), [&] {
    finding f;
    f.kind = "mpi-race";
    f.sentence = fmt::format("{} {} bytes that {} may still {}", later.run.what->what, present_of(later_how),
                             earlier.run.what->what, infinitive_of(earlier_how));
    describe(f, in, base, begin, end);
    f.now = later.side(later_how, base, in.bytes);
    f.earlier = earlier.side(earlier_how, base, in.bytes);
    f.missing = earlier.missing_wait();
    return f;
  });
}

void checker::add_unwritten(allocation& in, std::uint64_t base, std::uint64_t begin, std::uint64_t end,
                            const actor_ptr& by) {
  findings_.report(fmt::format("unwritten {} {:x}", by->key(), in.place->hash()), by->run.work.get(), [&] {
    finding f;
    f.kind = "never-written";
    f.sentence = fmt::format("{} reads device memory that nothing has written", by->run.what->what);
    describe(f, in, base, begin, end);
    f.now = by->side(use::read, base, in.bytes);
    f.missing = "a copy, a memset or a kernel that writes the bytes first";
    return f;
  });
}

void checker::describe(finding& to, const allocation& in, std::uint64_t base, std::uint64_t begin,
                       std::uint64_t end) const {
  to.address = begin;
  to.bytes = end - begin;
  to.offset = begin - base;
  to.allocation_bytes = in.bytes;
  to.allocation = finding_side{.how = "allocate", .what = in.place->call, .place = in.place->text()};
}

void checker::add_touch(const allocation* in, std::uint64_t base, std::uint64_t begin, std::uint64_t end,
                        const actor& touch, use touch_how, const actor& work, use work_how) {
  // By such an access, CPU code can learn that other bytes are ready.
  if (work_how == use::atomic) seen_.push_back(work.run.work->when);
  if (std::find(seen_.begin(), seen_.end(), work.run.work->when) != seen_.end()) return;
  const auto& vague = touch.run.what->vague;
  if (vague && (begin > vague->first || end < vague->second)) return;
  // One line of the program can touch memory by many instructions, for example in libc.
  std::string& place = places_[touch.run.what->place->hash()];
  if (place.empty()) place = touch.run.what->place->text();
  findings_.report(fmt::format("touch {} {}", work.key(), place), work.run.work.get(), [&] {
    finding f;
    const checked_operation& what = *work.run.what;
    const bool writes = touch_how == use::write, is_source = work_how == use::read && !what.is_kernel;
    f.kind = what.is_message ? "mpi-race" : writes && is_source ? "source-changed" : "host-touch";
    f.sentence = fmt::format("CPU code {} memory that {} may still {}", present_of(touch_how), what.what,
                             work_how == use::read ? "read" : "write");
    f.address = begin;
    f.bytes = end - begin;
    if (in != nullptr) describe(f, *in, base, begin, end);
    f.now = finding_side{.how = std::string(name_of(touch_how)), .what = touch.run.what->what, .place = place};
    f.earlier = work.side(work_how, base, in != nullptr ? in->bytes : 0);
    f.missing = work.missing_wait();
    return f;
  });
}

// ---- buffers of MPI in memory that the checker does not know

void checker::add_ordinary(const operation_run& message, std::span<const access_range> ranges) {
  const lock_guard lock(mutex_);
  const auto by = std::make_shared<const actor>(actor{message, 0});
  for (const access_range& each : ranges) ordinary_.push_back({each, by});
}

void checker::forget(const operation_run& message) {
  const lock_guard lock(mutex_);
  std::erase_if(ordinary_, [&](const ordinary_use& each) { return each.by->run.work == message.work; });
}

void checker::add_ordinary_touch(const touched& touch, use how) {
  for (const ordinary_use& each : ordinary_) {
    const std::uint64_t begin = std::max<std::uint64_t>(touch.begin, each.range.begin);
    const std::uint64_t end = std::min<std::uint64_t>(touch.end, each.range.end);
    if (begin < end && (how == use::write || each.range.how == use::write))
      add_touch(nullptr, 0, begin, end, **touch.by, how, *each.by, each.range.how);
  }
}

void checker::add_change(const operation_run& message, std::uint64_t address, const call_place& noticed) {
  const lock_guard lock(mutex_);
  const auto place = std::make_shared<const call_place>(noticed);
  const auto code = std::make_shared<const checked_operation>(
      checked_operation{.what = "CPU code before " + noticed.call, .place = place, .is_host = true});
  add_touch(nullptr, 0, address, address + 1, {{code, nullptr}, 0}, use::write, {message, 0}, use::read);
}

std::vector<finding> checker::finish() {
  const lock_guard lock(mutex_);
  add_touches();
  for (const auto& [line, last] : last_use_) {
    const auto& work = last;  // clang 14 cannot capture a structured binding
    if (order_.has_waited(work->when->self)) continue;
    findings_.report(fmt::format("wait {:x}", work->place->hash()), work.get(), [&] {
      finding f;
      f.kind = "never-waited";
      f.sentence = fmt::format("the program ends and has not waited for the work that {} queued", work->place->call);
      f.now =
          finding_side{.how = "queue", .what = work->place->call, .place = work->place->text(), .stream = work->stream};
      f.missing = fmt::format("a wait of the host for stream {} before the program ends", work->stream);
      return f;
    });
  }
  for (const auto& allocated : allocations_) {
    const std::uint64_t base = allocated.first;
    const auto& each = allocated.second;
    if (!each.must_be_freed || trace::python_lines::has_interpreter()) continue;
    findings_.report(fmt::format("leak {:x}", each.place->hash()), &each, [&] {
      finding f;
      f.kind = "leak";
      f.sentence = fmt::format("the program ends and has not freed {} bytes", each.bytes);
      f.address = base;
      f.allocation_bytes = each.bytes;
      f.allocation = finding_side{.how = "allocate", .what = each.place->call, .place = each.place->text()};
      f.missing = "the free of the memory";
      return f;
    });
  }
  std::vector<finding> all = findings_.all();
  if (shared_.end()) std::erase_if(all, [](const finding& each) { return each.kind == "rank-race"; });
  return all;
}

std::vector<finding> checker::take() {
  const lock_guard lock(mutex_);
  add_touches();
  return findings_.take();
}

}  // namespace hpe::check
