#include "interpose/soft/cudart/stream/stream_timeline.h"

namespace hpe::cudart {

void stream_timeline::wait(std::uint64_t position) const {
  unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return finished() >= position; });
}

void stream_timeline::advance() {
  {
    const lock_guard lock(mutex_);  // so that a waiting thread does not miss the notification
    finished_.fetch_add(1, std::memory_order_release);
  }
  changed_.notify_all();
}

}  // namespace hpe::cudart
