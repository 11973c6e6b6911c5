// announcer::announce enters an announcement before it checks which regions are open (region::open_to_host). A lane
// sets open_to_host before it looks for announcements. Both accesses are sequentially consistent, so at least one of
// the two threads sees the change that the other has made.

#include "runtime/coherence/announcements.h"

#include <algorithm>
#include <utility>

namespace hpe::coherence {

namespace {

std::uint64_t homes_in(const region& r, byte_range range) {
  if (r.single_copy()) return ~std::uint64_t{0};  // kernels of every device may use host memory and mapped files
  std::uint64_t homes = 0;
  for (std::uint64_t at = range.begin; at < range.end; at = r.end_of_home(at, range.end))
    homes |= std::uint64_t{1} << r.home_of(at);
  return homes;
}

bool overlap(byte_range a, byte_range b) { return a.begin < b.end && b.begin < a.end; }

}  // namespace

announcement_number announcements::add(std::uint64_t homes, std::vector<announced_use> uses) {
  const lock_guard lock(mutex_);
  entries_.emplace_hint(entries_.end(), ++last_, pending_announcement{homes, std::move(uses)});
  ++count_;
  return last_;
}

bool announcements::remove(announcement_number number) {
  bool watched = false;
  bool waited_for = false;
  {
    const lock_guard lock(mutex_);
    const auto found = entries_.find(number);
    if (found == entries_.end()) return false;
    watched = found->second.watched;
    entries_.erase(found);
    --count_;
    waited_for = waiting_ != 0;
  }
  if (waited_for) removed_.notify_all();
  return watched;
}

announcement_number announcements::in_the_way(const region& r, byte_range range, bool write, bool watch) {
  return !any() || r.ordered_by_program() ? 0 : latest_use(r, range, write, watch);
}

announcement_number announcements::latest_use(const region& r, byte_range range, bool write, bool watch) {
  const std::uint64_t homes = homes_in(r, range);
  const auto meets = [&](const announced_use& its) {
    return its.region == r.id && (write || its.write) && overlap(its.range, range);
  };
  const lock_guard lock(mutex_);
  for (auto it = entries_.rbegin(); it != entries_.rend(); ++it) {
    pending_announcement& each = it->second;
    if ((each.homes & homes) == 0 && std::none_of(each.uses.begin(), each.uses.end(), meets)) continue;
    each.watched = each.watched || watch;
    return it->first;
  }
  return 0;
}

template <class Find>
void announcements::wait_while(const region& r, byte_range range, const Find& in_the_way) {
  if (!any() || this_announced_thread().at_work) return;
  while (true) {
    announcement_number latest = 0;
    {
      const lock_guard lock(r.mutex);
      if (r.alive && range.end <= r.layout.extent) latest = in_the_way();
    }
    if (latest == 0) return;
    wait_for(latest);
  }
}

void announcements::wait_before(const region& r, byte_range range, bool write) {
  wait_while(r, range, [&] { return in_the_way(r, range, write); });
}

void announcements::wait_before_free(const region& r, byte_range range) {
  wait_while(r, range, [&] { return latest_use(r, range, true, false); });
}

void announcements::wait_for(announcement_number number) {
  unique_lock lock(mutex_);
  ++waiting_;
  removed_.wait(lock, [&]() HPE_REQUIRES(mutex_) { return entries_.count(number) == 0; });
  --waiting_;
}

announced_thread& this_announced_thread() noexcept {
  static thread_local announced_thread state;
  return state;
}

}  // namespace hpe::coherence
