#include "runtime/device/soft/owner/feeder.h"

#include <algorithm>
#include <utility>

#include "runtime/device/soft/owner/soft_stream.h"
#include "runtime/os/thread.h"

namespace hpe::device::soft {

feeder::feeder(std::unique_ptr<gate> sleeping_place) : gate_(std::move(sleeping_place)) {
  constexpr std::size_t all_streams = std::size_t{max_devices} * max_streams;
  for (auto* const list : {&hungry_, &still_hungry_}) list->reserve(all_streams);
  room_.reserve(all_streams);
  // Allocated before the thread starts, so that no exception can lose the started thread.
  auto memory_for_it = std::make_unique<std::thread>();
  *memory_for_it = os::start_thread("hpe-feeder", [this] { run(); });
  thread_ = std::move(memory_for_it);
}

feeder::~feeder() {
  if (!thread_) return;
  {
    const lock_guard lock(mutex_);
    stop_ = true;
    added_ = true;
    changed_.notify_all();
  }
  gate_->ring();
  thread_->join();
}

void feeder::add(soft_stream& hungry) noexcept {
  const lock_guard lock(mutex_);
  if (std::find(hungry_.begin(), hungry_.end(), &hungry) != hungry_.end()) return;
  hungry_.push_back(&hungry);
  added_ = true;
  changed_.notify_all();
  gate_->ring();
}

void feeder::run() {
  for (;;) {
    {
      unique_lock lock(mutex_);
      if (still_hungry_.empty())
        changed_.wait(lock, [this]() HPE_REQUIRES(mutex_) { return stop_ || !hungry_.empty(); });
      if (stop_) return;
      added_ = false;
      for (soft_stream* const s : hungry_)
        if (std::find(still_hungry_.begin(), still_hungry_.end(), s) == still_hungry_.end()) still_hungry_.push_back(s);
      hungry_.clear();
    }
    std::erase_if(still_hungry_, [](soft_stream* s) { return s->feed(); });
    if (!still_hungry_.empty()) sleep();
  }
}

void feeder::sleep() {
  constexpr std::chrono::microseconds between_looks{100};
  room_.clear();
  for (const soft_stream* s : still_hungry_) room_.push_back(s->point_of_room());
  gate_->sleep(room_, std::chrono::steady_clock::time_point::max());
  // Each completed command rings the gate. This pause lets several slots become free before the thread looks again.
  if (!added_) std::this_thread::sleep_for(between_looks);
}

}  // namespace hpe::device::soft
