// A job (one launch) is on the stack of the thread that calls run(). Other threads of the pool, the helpers, find the
// job in open_ and increment its `helpers` while they hold mutex_. So when run() has removed the job from open_ and
// `helpers` is zero, no other thread uses the job.
//
// Threads spin for 20 us before they sleep, because waking a thread takes as long as a small launch.
#include "runtime/device/soft/softd/tile_pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <exception>

#include "runtime/device/soft/shared/spin_until.h"
#include "runtime/os/thread.h"

namespace hpe::device::soft {

struct tile_pool::job {
  hpeHostKernel body;
  const void* parameters;
  const std::uint32_t (&grid)[3];
  std::uint64_t tiles;
  std::uint32_t team;
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> stop{false};
  // The threads that run tiles of the job, if it belongs to a team; guarded by the pool's mutex_.
  std::vector<pthread_t> threads{};
  std::atomic<unsigned> helpers{0};  // changed under the pool's mutex_
  mutex reporting{};
  std::optional<trouble> went_wrong HPE_GUARDED_BY(reporting){};

  [[nodiscard]] bool begun() const { return next.load(std::memory_order_relaxed) >= tiles; }

  void report(trouble what) {
    next.store(tiles);
    const lock_guard lock(reporting);
    if (!went_wrong) went_wrong = std::move(what);
  }
};

thread_local tile_pool::tile_owner tile_pool::in_this_thread;

tile_pool::tile_pool(unsigned threads, unsigned share, unsigned shares)
    : threads_(threads), share_(share), shares_(shares) {
  // The threads run until the process ends. If one of them cannot be started, the constructor ends the threads that it
  // has started, and throws.
  unsigned made = 0;
  try {
    for (; made + 1 < threads; ++made) os::start_thread("softd-unit", [this] { help(); }).detach();
  } catch (...) {
    unique_lock lock(mutex_);
    ending_ = true;
    ++opened_;
    wanted_.notify_all();
    left_.wait(lock, [&]() HPE_REQUIRES(mutex_) { return ended_ == made; });
    throw;
  }
}

std::optional<tile_pool::trouble> tile_pool::run(hpeHostKernel body, const void* parameters,
                                                 const std::uint32_t (&grid)[3], std::uint32_t team) {
  keep_to_cores();
  job task{body, parameters, grid, std::uint64_t{grid[0]} * grid[1] * grid[2], team};
  const bool shared = threads_ > 1 && task.tiles > 1;
  if (team != 0) {
    const lock_guard lock(mutex_);
    teams_.push_back(&task);
  }
  if (shared) {
    const lock_guard lock(mutex_);
    open_.push_back(&task);
    ++opened_;
    wanted_.notify_all();
  }
  work(task);
  if (shared) {
    unique_lock lock(mutex_);
    open_.remove(&task);
    lock.unlock();
    const auto is_left = [&] { return task.helpers == 0; };
    const bool has_ended = spin_until(is_left);
    lock.lock();
    if (!has_ended) left_.wait(lock, is_left);
  }
  if (team != 0) {
    const lock_guard lock(mutex_);
    teams_.remove(&task);
    if (task.stop) task.report({make_stop(), {}});
  }
  const lock_guard lock(task.reporting);
  return std::move(task.went_wrong);
}

void tile_pool::help() {
  take_crash_signals();
  keep_to_cores();
  unique_lock lock(mutex_);
  for (;;) {
    if (ending_) {
      ++ended_;
      left_.notify_all();
      return;
    }
    const auto found = std::find_if(open_.begin(), open_.end(), [](const job* task) { return !task->begun(); });
    if (found == open_.end()) {
      const std::uint64_t seen = opened_;
      const auto is_wanted = [&] { return opened_ != seen; };
      lock.unlock();
      const bool is_found = spin_until(is_wanted);
      lock.lock();
      if (!is_found) wanted_.wait(lock, is_wanted);
      continue;
    }
    job& task = **found;
    ++task.helpers;
    lock.unlock();
    work(task);
    lock.lock();
    if (--task.helpers == 0) left_.notify_all();
  }
}

void tile_pool::keep_to_cores() const {
  thread_local bool kept = false;
  if (shares_ != 0 && !kept) os::keep_to_share(share_, shares_);
  kept = true;
}

bool tile_pool::stop_teams(std::uint32_t lost) {
  const lock_guard lock(mutex_);
  bool left = false;
  for (job* const task : teams_) {
    if ((task->team & lost) == 0) continue;
    left = true;
    task->stop = true;
    task->next = task->tiles;
    for (const pthread_t thread : task->threads) stop_thread(thread);
  }
  return !left;
}

void tile_pool::work(job& task) {
  if (task.team == 0) return run_tiles(task);
  {
    const lock_guard lock(mutex_);
    task.threads.push_back(::pthread_self());
  }
  run_tiles(task);
  const lock_guard lock(mutex_);
  std::erase(task.threads, ::pthread_self());
}

// Returns the next range of tiles for the calling thread; nullopt if no tiles are left. The first ranges are large and
// the last ranges are small, so that all threads end at about the same time.
std::optional<hpeTiles> tile_pool::take(job& task) const {
  const std::uint64_t left = task.tiles - std::min(task.tiles, task.next.load(std::memory_order_relaxed));
  const std::uint64_t share = threads_ == 1 ? task.tiles : std::max<std::uint64_t>(1, left / (2 * threads_));
  const std::uint64_t begin = task.next.fetch_add(share);
  if (begin >= task.tiles) return std::nullopt;
  return hpeTiles{begin, std::min(task.tiles, begin + share), {task.grid[0], task.grid[1], task.grid[2]}};
}

std::optional<hpeTiles> tile_pool::take_more() { return in_this_thread.pool->take(*in_this_thread.task); }

void tile_pool::run_tiles(job& task) const {
  in_this_thread = {this, &task};
  while (const auto tiles = take(task)) {
    auto body = [&] { task.body(task.parameters, &*tiles); };
    try {
      if (const auto crashed = run_guarded(body, &task.stop)) task.report({crashed, {}});
    } catch (const std::exception& e) {
      task.report({std::nullopt, e.what()});
    } catch (...) {
      task.report({std::nullopt, "something that is no std::exception"});
    }
  }
}

}  // namespace hpe::device::soft
