#include "runtime/work/host_budget.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/trace/recorder.h"

namespace hpe::work {

namespace {

// An eighth of the limit, but at most most_free bytes, is kept free, so that hpe writes the file while other threads
// read and copy.
constexpr std::uint64_t part_free = 8;
constexpr std::uint64_t most_free = std::uint64_t{256} << 20;
constexpr std::string_view nothing_moves =
    "all of it is host memory (hpeMallocHost), zero-copy memory, or data of allocations that hpe moves only as a whole "
    "for lack of mappings";
constexpr std::chrono::milliseconds until_memory_may_be_unused{1};
constexpr std::chrono::milliseconds until_a_look_ahead{20};

}  // namespace

std::uint64_t host_budget::shortage() const {
  const std::uint64_t wanted = taken_ + wanted_ + std::min(limit_ / part_free, most_free);
  return wanted > limit_ ? wanted - limit_ : 0;
}

bool host_budget::has_free(std::uint64_t bytes) {
  const lock_guard lock(mutex_);
  return served_ == asked_ && taken_ + bytes <= limit_;
}

bool host_budget::has_enough() {
  const lock_guard lock(mutex_);
  return stop_ || shortage() == 0;
}

void host_budget::stop() noexcept {
  {
    const lock_guard lock(mutex_);
    stop_ = true;
  }
  for_room_.notify_all();
}

// The request of the first waiting thread fails only after a search through all memory has found that all memory is
// stuck, and only if no memory was freed, taken or given back during this search. Otherwise some memory can soon be
// freed, and the thread that makes room searches again.
void host_budget::keep_room(const std::function<room_made(std::uint64_t)>& make_room) {
  unique_lock lock(mutex_);
  for (;;) {
    for_room_.wait(lock,
                   [&]() HPE_REQUIRES(mutex_) { return stop_ || (shortage() != 0 && search_ == search::wanted); });
    if (stop_) return;
    const std::uint64_t bytes = shortage();
    search_ = search::running;
    lock.unlock();
    room_made made = make_room(bytes);
    lock.lock();
    if (made.freed == 0 && search_ == search::running && kept_ + made.stuck == taken_) {
      search_ = search::all_stuck;
      why_all_stuck_ = std::move(made.why);
      changed_.notify_all();
      continue;
    }
    search_ = search::wanted;
    if (made.freed != 0) continue;
    const bool urgent = wanted_ != 0;
    for_room_.wait_for(lock, urgent ? until_memory_may_be_unused : until_a_look_ahead,
                       [&]() HPE_REQUIRES(mutex_) { return stop_ || (wanted_ != 0 && !urgent); });
  }
}

bool host_budget::try_reserve(std::uint64_t bytes) {
  const lock_guard lock(mutex_);
  if (served_ != asked_ || taken_ + bytes > limit_) return false;
  taken_ += bytes;
  search_ = search::wanted;
  if (shortage() != 0) for_room_.notify_one();
  return true;
}

void host_budget::reserve(std::uint64_t bytes, bool beyond) {
  const trace::recorded here(trace::category::call, "wait for host memory", bytes);
  unique_lock lock(mutex_);
  const std::uint64_t mine = asked_++;
  wanted_ += bytes;
  search_ = search::wanted;
  for_room_.notify_one();
  const auto fits = [&]() HPE_REQUIRES(mutex_) { return taken_ + bytes <= limit_; };
  changed_.wait(lock,
                [&]() HPE_REQUIRES(mutex_) { return served_ == mine && (fits() || search_ == search::all_stuck); });
  const bool fit = fits();
  ++served_;
  wanted_ -= bytes;
  search_ = search::wanted;  // for the next thread that waits
  for_room_.notify_one();
  changed_.notify_all();
  if (!fit) {
    const std::string sentence = fmt::format(
        "{} more bytes of host memory are needed, {} of {} (HPE_HOST_MEMORY) are taken, and no data can make room: {}",
        bytes, taken_, limit_, why_all_stuck_.empty() ? nothing_moves : std::string_view(why_all_stuck_));
    if (!beyond) HPE_THROW(HPE_ERROR_OUT_OF_MEMORY, "{}", sentence);
    if (!std::exchange(warned_, true))
      log(log_level::warn, "{}; from now on, memory that CPU code touches exceeds the limit", sentence);
  }
  taken_ += bytes;
}

void host_budget::exceed(std::uint64_t bytes) {
  const lock_guard lock(mutex_);
  taken_ += bytes;
  search_ = search::wanted;
  for_room_.notify_one();
}

void host_budget::release(std::uint64_t bytes) noexcept {
  if (bytes == 0) return;
  {
    const lock_guard lock(mutex_);
    taken_ -= bytes;
    search_ = search::wanted;
  }
  changed_.notify_all();
}

void host_budget::take(std::uint64_t bytes) {
  if (bytes == 0) return;
  const auto require_allowed = [&]() HPE_REQUIRES(mutex_) {
    HPE_REQUIRE(
        kept_ + bytes <= most_kept(), HPE_ERROR_OUT_OF_MEMORY,
        "{} bytes of host memory were asked for, and {} are allocated; their sum may be at most {}, three quarters "
        "of {} (HPE_HOST_MEMORY), because other data passes through the rest",
        bytes, kept_, most_kept(), limit_);
  };
  {
    const lock_guard lock(mutex_);
    require_allowed();
  }
  reserve(bytes, false);
  try {
    const lock_guard lock(mutex_);
    require_allowed();  // other threads may have allocated meanwhile
    kept_ += bytes;
  } catch (...) {
    release(bytes);
    throw;
  }
}

std::uint64_t host_budget::most_to_take() {
  const lock_guard lock(mutex_);
  return most_kept() - kept_;
}

void host_budget::give_back(std::uint64_t bytes) noexcept {
  if (bytes == 0) return;
  {
    const lock_guard lock(mutex_);
    kept_ -= bytes;
  }
  release(bytes);
}

}  // namespace hpe::work
