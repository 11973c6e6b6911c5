#include "runtime/work/fetcher.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/os/thread.h"

namespace hpe::work {

using coherence::region;

namespace {

// The data that may be on its way keeps the link busy, even if the thread sleeps for some milliseconds.
constexpr std::uint64_t part_to_come = 16;
constexpr std::uint64_t largest_to_come = std::uint64_t{256} << 20;
// The pace allows at most this part of the device's memory to be on its way or to wait for its use.
constexpr std::uint64_t part_at_pace = 8;
// A pause bounds the time that the searches for data to evict take, and the wake-ups by threads that queue work.
constexpr std::chrono::milliseconds pause{1};
constexpr std::chrono::milliseconds pause_after_failure{100};
// After so many pauses in which no work was queued, the thread sleeps until work is queued.
constexpr unsigned most_idle_pauses = 100;

}  // namespace

fetcher::fetcher(device::device_set& devices, coherence::region_table& regions, eviction& evicts,
                 const std::vector<std::unique_ptr<mutex>>& turns, bring_in bring, finish end)
    : devices_(devices),
      regions_(regions),
      eviction_(evicts),
      turns_(turns),
      bring_(std::move(bring)),
      finish_(std::move(end)),
      arrivals_(devices.size()),
      mapped_(devices.size()),
      paces_(devices.size()) {}

fetcher::~fetcher() {
  ending_ = true;
  noted_.fetch_add(1);
  noted_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void fetcher::start() noexcept {
  std::call_once(starts_, [&] {
    try {
      thread_ = os::start_thread("hpe fetch", [this] { run(); });
    } catch (const std::exception& e) {
      log(log_level::info, "hpe fetches no data ahead: {}", e.what());
    }
  });
}

void fetcher::note_step() noexcept {
  noted_.fetch_add(1, std::memory_order_relaxed);
  noted_.notify_one();
}

void fetcher::run() noexcept {
  std::uint32_t before = 0;
  for (unsigned idle = 0; !ending_;) {
    const std::uint32_t noted = noted_.load();
    idle = noted == before ? idle + 1 : 0;
    before = noted;
    bool again = false;
    auto rest = pause;
    for (unsigned home = 0; home < devices_.size(); ++home) {
      // Memory of a shared device must be given back to other processes in their turns. If work may use all data, no
      // data moves while it runs.
      if (!eviction_.predicts(home) || eviction_.keeps_mapped() || devices_.at(home).share() != nullptr) continue;
      if (!turns_[home]->try_lock()) {
        again = true;
        continue;
      }
      try {
        again = fetch(home) || again;
        finish_(home);
      } catch (const std::exception& e) {
        log(log_level::debug, "data is not fetched ahead: {}", e.what());
        rest = pause_after_failure;
      }
      turns_[home]->unlock();
    }
    std::this_thread::sleep_for(rest);
    if (!again || idle > most_idle_pauses) noted_.wait(noted);
  }
}

// Data is fetched in groups, because each search for data to evict takes time.
bool fetcher::fetch(unsigned home) {
  forget(home);
  const std::uint64_t most = most_to_come(home);
  if (2 * bytes_to_come(home) > most && !pace_allows(home, most / 4)) return true;
  std::optional<eviction::supply> from;
  while (const auto use = eviction_.upcoming(home)) {
    if (!is_there(home, *use) && (is_full(home) || !bring_(home, *use, from))) return true;
    eviction_.pass_upcoming(home);
  }
  return false;
}

// The region may have ended since the use was recorded, and its object may have become another region.
bool fetcher::is_there(unsigned home, const coherence::use_cycle::predicted_use& use) const {
  region& r = regions_.at(use.region);
  const lock_guard lock(r.mutex);
  return !r.alive || r.single_copy() || r.degraded || use.bytes.end > r.layout.extent ||
         (r.home_set() >> home & 1) == 0 || r.resident.covers(use.bytes);
}

void fetcher::add(unsigned home, timepoint upload, std::uint64_t bytes, std::uint64_t due) {
  if (!eviction_.predicts(home)) return;
  start();
  forget(home);
  arrivals_[home].push_back({upload, bytes, due});
  paces_[home].add(bytes, most_to_come(home));
}

void fetcher::forget(unsigned home) {
  std::deque<arrival>& all = arrivals_[home];
  const std::uint64_t step = eviction_.steps(home);
  paces_[home].advance(step, eviction_.period(home), most_at_pace(home));
  while (!all.empty() && (all.front().due == 0 || all.front().due < step) && devices_.reached(all.front().upload))
    all.pop_front();
}

std::uint64_t fetcher::bytes_to_come(unsigned home) const noexcept {
  std::uint64_t sum = mapped_[home];
  for (const arrival& each : arrivals_[home]) sum += each.bytes;
  return sum;
}

std::uint64_t fetcher::most_to_come(unsigned home) const noexcept {
  return std::min<std::uint64_t>(devices_.at(home).info().memory_bytes / part_to_come, largest_to_come);
}

bool fetcher::pace_allows(unsigned home, std::uint64_t bytes) const noexcept {
  return paces_[home].credit() > bytes && bytes_to_come(home) < most_at_pace(home);
}

std::uint64_t fetcher::most_at_pace(unsigned home) const noexcept {
  return devices_.at(home).info().memory_bytes / part_at_pace;
}

bool fetcher::is_full(unsigned home) const noexcept {
  return bytes_to_come(home) > most_to_come(home) && !pace_allows(home, 0);
}

void fetcher::await(unsigned home) const {
  if (!eviction_.predicts(home)) return;
  const std::deque<arrival>& all = arrivals_[home];
  std::uint64_t sum = 0;
  for (auto each = all.rbegin(); each != all.rend(); ++each)
    if ((sum += each->bytes) > most_to_come(home)) return wait_for(std::span(&each->upload, 1), devices_);
}

}  // namespace hpe::work
