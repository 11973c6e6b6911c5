#include "runtime/device/soft/owner/feeder.h"

#include <algorithm>
#include <utility>

#include "runtime/device/soft/owner/soft_stream.h"
#include "runtime/os/thread.h"

namespace hpe::device::soft {

feeder::feeder(std::unique_ptr<gate> sleeping_place) : gate_(std::move(sleeping_place)) {
  hungry_.reserve(std::size_t{max_devices} * max_streams);
  auto memory_for_it = std::make_unique<std::thread>();  // before there is a thread that must not be lost
  *memory_for_it = os::start_thread("hpe-feeder", [this] { run(); });
  thread_ = std::move(memory_for_it);
}

feeder::~feeder() {
  if (!thread_) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    added_ = true;
    changed_.notify_all();
  }
  gate_->ring();
  thread_->join();
}

void feeder::add(soft_stream& hungry) noexcept {
  const std::lock_guard lock(mutex_);
  if (std::find(hungry_.begin(), hungry_.end(), &hungry) != hungry_.end()) return;
  hungry_.push_back(&hungry);
  added_ = true;
  changed_.notify_all();
  gate_->ring();
}

void feeder::run() {
  std::vector<soft_stream*> still_hungry;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      if (still_hungry.empty()) changed_.wait(lock, [this] { return stop_ || !hungry_.empty(); });
      if (stop_) return;
      added_ = false;
      for (soft_stream* const s : hungry_)
        if (std::find(still_hungry.begin(), still_hungry.end(), s) == still_hungry.end()) still_hungry.push_back(s);
      hungry_.clear();
    }
    std::erase_if(still_hungry, [](soft_stream* s) { return s->feed(); });
    if (!still_hungry.empty()) sleep(still_hungry);
  }
}

void feeder::sleep(std::span<soft_stream* const> hungry) {
  constexpr std::chrono::microseconds between_looks{100};
  constexpr std::chrono::milliseconds longest{250};
  std::vector<timepoint> room;
  room.reserve(hungry.size());
  for (const soft_stream* s : hungry) room.push_back(s->point_of_room());
  gate_->sleep(room, std::chrono::steady_clock::now() + longest);
  // Each completion rings the gate, and one slot is not worth a turn.
  if (!added_) std::this_thread::sleep_for(between_looks);
}

}  // namespace hpe::device::soft
