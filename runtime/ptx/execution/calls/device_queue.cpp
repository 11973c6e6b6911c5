#include "runtime/ptx/execution/calls/device_queue.h"

#include <cstring>
#include <utility>

namespace hpe::ptx {

void queued_work::copy_or_fill() const {
  for (std::size_t row = 0; row < height; ++row) {
    std::uint8_t* const at = to + row * to_pitch;
    if (from == nullptr) {
      std::memset(at, value, width);
    } else {
      std::memmove(at, from + row * from_pitch, width);
    }
  }
}

device_queue::~device_queue() {
  for (const auto& [parameters, _] : prepared_) release_(parameters);
}

void device_queue::prepare(const queued_work& launch) {
  const lock_guard lock(mutex_);
  prepared_[launch.parameters] = launch;
}

std::optional<queued_work> device_queue::take_prepared(void* parameters) {
  const lock_guard lock(mutex_);
  auto found = prepared_.extract(parameters);
  return found.empty() ? std::nullopt : std::optional(found.mapped());
}

void device_queue::add(const queued_work& what, bool is_tail) {
  const lock_guard lock(mutex_);
  (is_tail ? content_.tails : content_.children).push_back(what);
}

std::uint32_t device_queue::error(std::uint64_t thread) const {
  const lock_guard lock(mutex_);
  const auto found = errors_.find(thread);
  return found == errors_.end() ? 0 : found->second;
}

void device_queue::set_error(std::uint64_t thread, std::uint32_t code) {
  const lock_guard lock(mutex_);
  if (code == 0) {
    errors_.erase(thread);
  } else {
    errors_[thread] = code;
  }
}

std::uint64_t device_queue::new_handle() {
  constexpr std::uint64_t first = 0x100;  // larger than CUDA's constants, such as cudaStreamTailLaunch
  const lock_guard lock(mutex_);
  return first + handles_++;
}

device_queue::content device_queue::take() {
  const lock_guard lock(mutex_);
  return std::exchange(content_, {});
}

void descendants::enter(device_queue::content queued) {
  if (!queued.children.empty() || !queued.tails.empty()) open_.push_back(std::move(queued));
}

std::optional<queued_work> descendants::next() {
  if (open_.empty()) return std::nullopt;
  device_queue::content& top = open_.back();
  std::deque<queued_work>& from = top.children.empty() ? top.tails : top.children;
  const queued_work result = from.front();
  from.pop_front();
  // Removes the empty entry here, so that a chain of tail launches does not grow the stack.
  if (top.children.empty() && top.tails.empty()) open_.pop_back();
  return result;
}

}  // namespace hpe::ptx
