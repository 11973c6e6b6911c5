#include "interpose/mpi/windows/window.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/error.h"

// Invariant between two calls: last_ and the public copy differ only where other processes have written; last_ and the
// program's memory differ only where the owner has written. Other processes may write to the public copy while
// take_in() reads it. So take_in() copies each change first to last_, and then from last_ to the program's memory. If
// another process writes the same bytes during this time, they differ from last_, and the next take_in() finds them.

namespace hpe::interpose::mpi {

namespace {

constexpr std::size_t page = 4096;
// take_in() also copies up to this many unchanged bytes between two changes, because a second copy would take longer.
// The owner has not changed these bytes since publish() (window.h).
constexpr std::size_t small_gap = 64;

// Calls change(offset, bytes) for the ranges in which a and b differ. Up to `gap` equal bytes between two differences
// are part of one range.
template <class Change>
void for_each_change(const std::byte* a, const std::byte* b, std::size_t bytes, std::size_t gap, Change change) {
  std::size_t begin = 0;  // the offset of the current range
  std::size_t end = 0;    // the end of the current range; 0 if there is none
  for (std::size_t at = 0; at < bytes;) {
    const std::size_t stop = std::min(at + page, bytes);
    if (std::memcmp(a + at, b + at, stop - at) == 0) {
      at = stop;
      continue;
    }
    for (; at < stop; ++at) {
      if (a[at] == b[at]) continue;
      if (end != 0 && at > end + gap) {
        change(begin, end - begin);
        end = 0;
      }
      if (end == 0) begin = at;
      end = at + 1;
    }
  }
  if (end != 0) change(begin, end - begin);
}

}  // namespace

window::window(void* base, std::size_t bytes)
    : base_(base), bytes_(bytes), last_(base, bytes, host_use::read_write, true) {
  last_.refresh();
  if (last_.in_place()) {
    exposed_ = static_cast<std::byte*>(last_.data());
    return;
  }
  const auto* const now = static_cast<const std::byte*>(last_.data());
  public_.assign(now, now + bytes);
  exposed_ = public_.data();
}

void window::publish() {
  const lock_guard lock(mutex_);
  if (last_.in_place()) return last_.refresh();
  auto* const last = static_cast<std::byte*>(last_.data());
  last_.settle();
  const buffer_access now(base_, bytes_, host_use::read);
  HPE_REQUIRE(
      now.staged(), HPE_ERROR_NOT_A_REGION,
      "the memory of a window, {} bytes at {}, was freed before the window was freed or the memory was detached",
      bytes_, base_);
  const auto* const memory = static_cast<const std::byte*>(now.data());
  for_each_change(memory, last, bytes_, 0, [&](std::size_t offset, std::size_t n) {
    std::memcpy(last + offset, memory + offset, n);
    std::memcpy(exposed_ + offset, memory + offset, n);
  });
}

void window::take_in() {
  const lock_guard lock(mutex_);
  if (last_.in_place()) return;
  auto* const last = static_cast<std::byte*>(last_.data());
  last_.settle();
  std::vector<placed_box> changes;
  for_each_change(exposed_, last, bytes_, small_gap, [&](std::size_t offset, std::size_t n) {
    std::memcpy(last + offset, exposed_ + offset, n);
    changes.push_back({static_cast<std::ptrdiff_t>(offset), {{n}, {}}});
  });
  if (!changes.empty()) last_.written(changes);
}

window_table& window_table::all() {
  static auto* const table = new window_table;
  return *table;
}

void window_table::add(MPI_Win win, std::shared_ptr<window> made) {
  const lock_guard lock(mutex_);
  windows_[win].push_back(std::move(made));
  count_.store(windows_.size(), std::memory_order_relaxed);
}

window_table::elements window_table::find(MPI_Win win) {
  if (empty()) return {};
  const lock_guard lock(mutex_);
  const auto found = windows_.find(win);
  return found != windows_.end() ? found->second : elements{};
}

window_table::elements window_table::take(MPI_Win win) {
  if (empty()) return {};
  const lock_guard lock(mutex_);
  auto found = windows_.extract(win);
  count_.store(windows_.size(), std::memory_order_relaxed);
  return found ? std::move(found.mapped()) : elements{};
}

std::shared_ptr<window> window_table::take(MPI_Win win, const void* base) {
  if (empty()) return nullptr;
  const lock_guard lock(mutex_);
  const auto found = windows_.find(win);
  if (found == windows_.end()) return nullptr;
  elements& its = found->second;
  const auto one = std::find_if(its.begin(), its.end(), [&](const auto& w) { return w->base() == base; });
  if (one == its.end()) return nullptr;
  std::shared_ptr<window> result = std::move(*one);
  its.erase(one);
  if (its.empty()) windows_.erase(found);
  count_.store(windows_.size(), std::memory_order_relaxed);
  return result;
}

}  // namespace hpe::interpose::mpi
